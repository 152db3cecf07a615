"""Everything written for CUDA: kernels, their compiler and cache, streams."""
