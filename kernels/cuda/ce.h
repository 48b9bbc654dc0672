// The words that CUDA kernels are written in: a `.cuh` includes this header and nothing else of
// CUDA, and compiles twice. nvcc sees ce_nvcc.h: thin names for built-in variables, intrinsics and
// PTX. Any other compiler sees kernels/cuda_host: threads are fibers, and the block's rules (who
// meets whom at a barrier, what was copied, who may read it) are checked while they run.
// docs/CUDA.md has the rules for kernels.
//
//   CE_GLOBAL(threads)           a kernel of blocks of at most `threads` threads; returns nothing
//   CE_DEVICE                    a function of device code
//   CE_UNROLL                    before a loop of a constant count
//   CE_SHARED(name, T, [n][m])   an array of T in the block's shared memory; one T: no brackets
//   CE_DYN_SMEM(name)            unsigned char*, 16-byte aligned: the launch's shared_bytes
//   ce::launch(kernel<...>, {name, grid, threads, shared_bytes, stream}, arguments...) -> Status
//
// Indices: thread_x() in a block of block_threads(); block_x() … in a grid of grid_x() …; lane() of
// warp(). Between them: sync(), syncwarp(mask), shfl… , ballot, any, all; every mask is explicit.
// Memory: load/store of a Pack, copy_async16 + copy_commit + copy_wait<n>, atomic_….
// Matrices: ldmatrix_…, mma_…; dp4a.
#pragma once

#if defined(__CUDACC__)
#include "kernels/cuda/ce_nvcc.h"
#else
#include "kernels/cuda_host/ce_host.h"
#endif
