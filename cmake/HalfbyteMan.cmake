# SPDX-License-Identifier: Apache-2.0
# Manual pages: docs/man/<page>.<section>.scd, made into roff by scdoc.

set(HALFBYTE_MAN_PAGES halfbyte.1 libhalfbyte.3 halfbyte-formats.7)

find_program(HALFBYTE_SCDOC scdoc)
mark_as_advanced(HALFBYTE_SCDOC)
if(NOT HALFBYTE_SCDOC)
    message(STATUS "Manual pages: scdoc not found, so none are built")
    return()
endif()

set(pages "")
foreach(page IN LISTS HALFBYTE_MAN_PAGES)
    set(source "${PROJECT_SOURCE_DIR}/docs/man/${page}.scd")
    set(output "${PROJECT_BINARY_DIR}/man/${page}")
    add_custom_command(
        OUTPUT "${output}"
        COMMAND ${CMAKE_COMMAND} -E make_directory "${PROJECT_BINARY_DIR}/man"
        COMMAND sh -c "\"$0\" < \"$1\" > \"$2.part\" && mv \"$2.part\" \"$2\""
            "${HALFBYTE_SCDOC}" "${source}" "${output}"
        DEPENDS "${source}"
        VERBATIM
        COMMENT "Making the manual page ${page}")
    string(REGEX REPLACE "^.*\\." "" section "${page}")
    install(FILES "${output}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
    list(APPEND pages "${output}")
endforeach()
add_custom_target(halfbyte_man ALL DEPENDS ${pages})
