# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, floating-point rules and sanitizers, the same for every target.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(HALFBYTE_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
    -Wimplicit-fallthrough)

# The result is defined operation by operation: a compiler that fuses or reorders them changes the
# bits.
set(HALFBYTE_FP_FLAGS -ffp-contract=off -fno-fast-math)

if("${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_RELEASE}" MATCHES "-Ofast|-ffast-math|-funsafe-math")
    message(FATAL_ERROR "halfbyte defines its results bit by bit; fast-math would change them")
endif()

set(HALFBYTE_SANITIZE_FLAGS "")
if(HALFBYTE_BUILD_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "HALFBYTE_BUILD_FUZZ needs clang: use `cmake --preset fuzz`")
    endif()
    list(APPEND HALFBYTE_SANITIZE_FLAGS -fsanitize=fuzzer-no-link)
endif()
if(HALFBYTE_SANITIZE)
    list(APPEND HALFBYTE_SANITIZE_FLAGS
        -fsanitize=${HALFBYTE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
        -UNDEBUG) # assertions count here
endif()

# halfbyte_set_flags(<target>...) applies all of it to targets of this project; nothing of it
# reaches their users.
function(halfbyte_set_flags)
    foreach(target IN LISTS ARGN)
        target_compile_options(${target} PRIVATE
            ${HALFBYTE_WARNINGS} ${HALFBYTE_FP_FLAGS} ${HALFBYTE_SANITIZE_FLAGS}
            $<$<BOOL:${HALFBYTE_WERROR}>:-Werror>)
        target_link_options(${target} PRIVATE ${HALFBYTE_SANITIZE_FLAGS})
    endforeach()
endfunction()
