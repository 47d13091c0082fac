# SPDX-License-Identifier: Apache-2.0
# <halfbyte/hopper.h> and <halfbyte/emulator.h> as other projects include them: copies of the
# sources' headers below one folder, that include each other by it.

set(HALFBYTE_HEADERS_DIR "${PROJECT_BINARY_DIR}/include")
set(headers_from "${PROJECT_SOURCE_DIR}/src")

# Writes only what has changed, so that nothing is compiled again for nothing.
function(halfbyte_write_header path text)
    if(EXISTS "${path}")
        file(READ "${path}" before)
        if(before STREQUAL text)
            return()
        endif()
    endif()
    file(WRITE "${path}" "${text}")
endfunction()

file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${headers_from}"
    "${headers_from}/kernels/hopper/*.h")
foreach(header IN LISTS headers ITEMS "emulator/emulator.h")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${headers_from}/${header}")
    file(READ "${headers_from}/${header}" text)
    string(REGEX REPLACE "#include \"([^\"]+)\"" "#include <halfbyte/\\1>" text "${text}")
    halfbyte_write_header("${HALFBYTE_HEADERS_DIR}/halfbyte/${header}" "${text}")
endforeach()

foreach(name IN ITEMS hopper emulator)
    string(TOUPPER ${name} guard)
    set(path "kernels/hopper/hopper.h")
    if(name STREQUAL "emulator")
        set(path "emulator/emulator.h")
    endif()
    halfbyte_write_header("${HALFBYTE_HEADERS_DIR}/halfbyte/${name}.h"
"/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_INSTALLED_${guard}_H
#define HALFBYTE_INSTALLED_${guard}_H
#include <halfbyte/${path}>
#endif
")
endforeach()
