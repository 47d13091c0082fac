# SPDX-License-Identifier: Apache-2.0
# Removes the files that MANIFEST lists, below DESTDIR if that is set, then the folders that were
# ours alone.
if(NOT EXISTS "${MANIFEST}")
    message(FATAL_ERROR "nothing to uninstall: ${MANIFEST} does not exist")
endif()
file(STRINGS "${MANIFEST}" files)
foreach(file IN LISTS files)
    set(path "$ENV{DESTDIR}${file}")
    if(EXISTS "${path}" OR IS_SYMLINK "${path}")
        message(STATUS "Removing: ${path}")
        file(REMOVE "${path}")
        # rmdir, since it takes empty folders only.
        cmake_path(GET file PARENT_PATH folder)
        set(result 0)
        while("${folder}/" MATCHES "/halfbyte/" AND result EQUAL 0)
            execute_process(COMMAND rmdir "$ENV{DESTDIR}${folder}"
                RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
            cmake_path(GET folder PARENT_PATH folder)
        endwhile()
    else()
        message(STATUS "Not there: ${path}")
    endif()
endforeach()
