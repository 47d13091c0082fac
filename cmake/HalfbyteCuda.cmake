# SPDX-License-Identifier: Apache-2.0
# Compiles the GPU kernels and embeds them into the library. Without nvcc the library has the CPU
# model alone.

option(HALFBYTE_CUDA "Build the GPU kernels where nvcc 12.3 or later is found" ON)
find_program(HALFBYTE_NVCC nvcc
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(HALFBYTE_NVCC)

# An older nvcc, such as the one that Debian 12 packages, is as good as none.
set(HALFBYTE_NVCC_FITS OFF)
if(HALFBYTE_CUDA AND HALFBYTE_NVCC)
    execute_process(COMMAND "${HALFBYTE_NVCC}" --version
        OUTPUT_VARIABLE nvcc_says ERROR_QUIET)
    if(nvcc_says MATCHES "release ([0-9]+\\.[0-9]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.3)
        set(HALFBYTE_NVCC_FITS ON)
    endif()
endif()

if(HALFBYTE_NVCC_FITS)
    enable_language(ASM)
    set(HALFBYTE_HAS_KERNELS ON)
    message(STATUS "GPU kernels: built with ${HALFBYTE_NVCC}")
else()
    set(HALFBYTE_HAS_KERNELS OFF)
    message(STATUS
        "GPU kernels: none (no nvcc of CUDA 12.3 or later, or HALFBYTE_CUDA off); CPU model only")
endif()

# Appends to `images` the assembly file that makes the cubin a constant of the program,
# kernel_image_<name>.
macro(halfbyte_embed_cubin images name cubin)
    set(image "${PROJECT_BINARY_DIR}/kernels/${name}.S")
    file(CONFIGURE OUTPUT "${image}" @ONLY CONTENT "#define KERNEL_NAME ${name}
#define KERNEL_CUBIN \"${cubin}\"
#include \"${PROJECT_SOURCE_DIR}/src/cuda/kernel_image.S\"
")
    set_source_files_properties("${image}" PROPERTIES OBJECT_DEPENDS "${cubin}")
    list(APPEND ${images} "${image}")
endmacro()

# Sets `objects` to what embeds kernels: one object a source, from a cubin that
# tools/build_kernel.sh has made and accepted.
function(halfbyte_embed_sources objects sources headers)
    set(build "${PROJECT_BINARY_DIR}/kernels")
    file(MAKE_DIRECTORY "${build}")
    set(script "${PROJECT_SOURCE_DIR}/tools/build_kernel.sh")
    set(images "")
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM name)
        set(cubin "${build}/${name}.cubin")
        add_custom_command(
            OUTPUT "${cubin}"
            BYPRODUCTS "${cubin}.log" "${cubin}.resources"
            COMMAND "${script}" "${HALFBYTE_NVCC}" "${source}" "${cubin}"
                "${PROJECT_SOURCE_DIR}/src"
            DEPENDS "${source}" ${headers} "${script}"
            VERBATIM COMMENT "Compiling kernel ${name}")
        halfbyte_embed_cubin(images ${name} "${cubin}")
    endforeach()
    set(${objects} "${images}" PARENT_SCOPE)
endfunction()

# The library's kernels: those in src/kernels/instances.
function(halfbyte_embed_kernels objects)
    set(kernels "${PROJECT_SOURCE_DIR}/src/kernels")
    file(GLOB sources CONFIGURE_DEPENDS "${kernels}/instances/*.cu")
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${kernels}/*.h")
    halfbyte_embed_sources(images "${sources}" "${headers}")
    set(${objects} "${images}" PARENT_SCOPE)
endfunction()

# The probes of the measurements: those in bench/kernels.
function(halfbyte_embed_probes objects)
    set(probes "${PROJECT_SOURCE_DIR}/bench/kernels")
    file(GLOB sources CONFIGURE_DEPENDS "${probes}/*.cu")
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS
        "${probes}/*.h" "${PROJECT_SOURCE_DIR}/src/kernels/hopper/*.h")
    halfbyte_embed_sources(images "${sources}" "${headers}")
    set(${objects} "${images}" PARENT_SCOPE)
endfunction()

# halfbyte_embed_test_kernels(<objects> INCLUDES <folder>... DEPENDS <file>... SOURCES <file>...)
#
# The same for kernels of the tests, which may hold several kernels a file and need not be fast.
# tools/build_test_kernel.sh compares the messages of ptxas with those that the file expects.
function(halfbyte_embed_test_kernels objects)
    cmake_parse_arguments(arg "" "" "INCLUDES;DEPENDS;SOURCES" ${ARGN})
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS
        "${PROJECT_SOURCE_DIR}/src/kernels/*.h" "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
    set(build "${PROJECT_BINARY_DIR}/kernels")
    file(MAKE_DIRECTORY "${build}")
    set(script "${PROJECT_SOURCE_DIR}/tools/build_test_kernel.sh")
    set(images "")
    foreach(source IN LISTS arg_SOURCES)
        cmake_path(GET source STEM name)
        set(cubin "${build}/${name}.cubin")
        add_custom_command(
            OUTPUT "${cubin}"
            BYPRODUCTS "${cubin}.log"
            COMMAND "${script}" "${HALFBYTE_NVCC}" "${source}" "${cubin}" ${arg_INCLUDES}
            DEPENDS "${source}" ${headers} ${arg_DEPENDS} "${script}"
            VERBATIM COMMENT "Compiling test kernels ${name}")
        halfbyte_embed_cubin(images ${name} "${cubin}")
    endforeach()
    set(${objects} "${images}" PARENT_SCOPE)
endfunction()
