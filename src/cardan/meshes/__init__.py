"""Triangle meshes: files, volume and inertia, surfaces of solids, simplification. No mechanics."""
