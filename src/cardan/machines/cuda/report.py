"""The cards of this machine in words, or why there is none to use."""

from __future__ import annotations

from cardan.machines.build import stored
from cardan.machines.cuda import driver
from cardan.machines.cuda.ptx import architecture_for


def report() -> str:
    """One line for each card, with the driver and the compiled kernels kept for it; or the reason why there is none."""
    try:
        version, count = driver.driver_version(), driver.card_count()
        if not count:
            return "gpu: the NVIDIA driver finds none"
    except driver.DeviceError as error:
        return "gpu: none; " + str(error).removeprefix("device='gpu': ")
    kept = [what[2:4] for what in stored() if what[0] == "cuda"]
    lines = []
    for index in range(count):
        try:
            card = driver.card(index)
            mine = kept.count((card.capability, version))
            lines.append(
                f"gpu:{index}: {card.name}, sm_{card.capability} (code for sm_{architecture_for(card.capability)}), "
                f"{card.free_bytes() / 2**30:.1f} GiB free; driver for CUDA {driver.cuda(version)}; {mine} kernels kept"
            )
        except driver.DeviceError as error:
            lines.append(f"gpu:{index}: not usable; {error}")
    return "\n".join(lines)
