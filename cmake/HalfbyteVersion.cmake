# SPDX-License-Identifier: Apache-2.0
# The version stands in the public header alone; everything else reads it there.

# halfbyte_read_version(<header>) sets HALFBYTE_VERSION (major.minor.patch) and HALFBYTE_API_VERSION
# (the number in the SONAME) in the caller's scope, and makes the build configure itself anew when
# the header changes.
function(halfbyte_read_version header)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
    file(STRINGS "${header}" lines REGEX "^#define HALFBYTE_(API_)?VERSION")
    foreach(name IN ITEMS VERSION_MAJOR VERSION_MINOR VERSION_PATCH API_VERSION)
        set(value "")
        foreach(line IN LISTS lines)
            if(line MATCHES "^#define HALFBYTE_${name} +([0-9]+)")
                set(value "${CMAKE_MATCH_1}")
            endif()
        endforeach()
        if(value STREQUAL "")
            message(FATAL_ERROR "${header}: no plain integer HALFBYTE_${name}")
        endif()
        set(${name} "${value}")
    endforeach()
    set(HALFBYTE_VERSION "${VERSION_MAJOR}.${VERSION_MINOR}.${VERSION_PATCH}" PARENT_SCOPE)
    set(HALFBYTE_API_VERSION "${API_VERSION}" PARENT_SCOPE)
endfunction()
