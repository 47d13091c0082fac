# SPDX-License-Identifier: Apache-2.0
# Says what this build can run on. GPU kernels will be compiled here and embedded into the library.

find_program(HALFBYTE_NVCC nvcc
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(HALFBYTE_NVCC)
if(HALFBYTE_NVCC)
    set(found "nvcc found at ${HALFBYTE_NVCC}, not used")
else()
    set(found "nvcc not found, not needed")
endif()
message(STATUS "CUDA kernels: none in this version; CPU model only (${found})")
