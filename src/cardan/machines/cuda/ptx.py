"""From IR to PTX, NVIDIA's portable assembly, through LLVM. No card or driver is needed for it."""

from __future__ import annotations

from functools import cache
from typing import Any

from cardan.machines.host import interruptible

# For each architecture the lowest version of PTX that has it: an old driver refuses a newer version.
_VERSIONS = {60: 60, 70: 60, 75: 63, 80: 70, 86: 71, 89: 78, 90: 78, 100: 86, 120: 87}
OLDEST = min(_VERSIONS)
# Versions of LLVM known to have the option that leaves out one pass of the code generator, which takes half of its time
# for long kernels and finds nothing. Others would end the process if they did not know it.
_QUIET = range(15, 23)


def architecture_for(capability: int) -> int:
    """The newest architecture, e.g. 90, that code is made for and that a card of some compute capability runs."""
    return max((known for known in _VERSIONS if known <= capability), default=OLDEST)


@cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if llvm.llvm_version_info[0] in _QUIET:
        llvm.set_option("cardan", "-disable-nvptx-load-store-vectorizer")
    return llvm.Target.from_triple("nvptx64-nvidia-cuda")


def to_ptx(ir: str, architecture: int) -> str:
    """PTX of an IR module for an architecture such as 90.

    Few of LLVM's passes run: what asks for it is inlined into the kernel, and arrays become registers. The order of a
    straight line is left as it was printed, and nothing is unrolled.
    """

    def compile_module() -> bytes:
        import llvmlite.binding as llvm

        machine = _target().create_target_machine(
            cpu=f"sm_{architecture}", features=f"+ptx{_VERSIONS[architecture]}", opt=3
        )
        module = llvm.parse_assembly(ir, llvm.create_context())
        module.triple, module.data_layout = "nvptx64-nvidia-cuda", str(machine.target_data)
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, builder)
        text: str = machine.emit_assembly(module)
        return text.encode()

    return interruptible(compile_module).decode()
