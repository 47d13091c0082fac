# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where, and the files by which other builds find it: library and symbolic
# links, header, pc, CMake package, manual pages, command line tool. Everything is relocatable:
# nothing installed holds the prefix.
include(CMakePackageConfigHelpers)

install(TARGETS halfbyte halfbyte_static EXPORT halfbyte-targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/include/halfbyte.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

# The emulator, for other people's kernels.
if(TARGET halfbyte_emulator)
    install(TARGETS halfbyte_emulator EXPORT halfbyte-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(DIRECTORY "${PROJECT_BINARY_DIR}/include/halfbyte"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()

# pkg-config. ${pcfiledir} is where the .pc file lies now, so the tree can be moved as a whole.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(HALFBYTE_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
    set(HALFBYTE_PC_LIBDIR "${CMAKE_INSTALL_FULL_LIBDIR}")
    set(HALFBYTE_PC_INCLUDEDIR "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
    file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(HALFBYTE_PC_PREFIX "\${pcfiledir}/${up}")
    set(HALFBYTE_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
    set(HALFBYTE_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
list(TRANSFORM HALFBYTE_SYSTEM_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE HALFBYTE_PC_PRIVATE)
list(JOIN HALFBYTE_PC_PRIVATE " " HALFBYTE_PC_PRIVATE)
configure_file(
    "${PROJECT_SOURCE_DIR}/cmake/halfbyte.pc.in" "${PROJECT_BINARY_DIR}/halfbyte.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/halfbyte.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(TARGET halfbyte_emulator)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/halfbyte-emulator.pc.in"
        "${PROJECT_BINARY_DIR}/halfbyte-emulator.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/halfbyte-emulator.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

# find_package(halfbyte). Before 1.0 a minor version may break its users, so only the same one
# satisfies a request.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/halfbyte")
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatibility SameMinorVersion)
else()
    set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/halfbyte-config-version.cmake" COMPATIBILITY ${compatibility})
configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/halfbyte-config.cmake.in"
    "${PROJECT_BINARY_DIR}/halfbyte-config.cmake"
    INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
install(FILES
    "${PROJECT_BINARY_DIR}/halfbyte-config.cmake"
    "${PROJECT_BINARY_DIR}/halfbyte-config-version.cmake"
    DESTINATION "${package_dir}")
install(EXPORT halfbyte-targets NAMESPACE halfbyte:: DESTINATION "${package_dir}")

if(HALFBYTE_BUILD_MAN)
    include(HalfbyteMan)
endif()
if(TARGET halfbyte_cli)
    install(TARGETS halfbyte_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

add_custom_target(uninstall
    COMMAND ${CMAKE_COMMAND} -D "MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt"
        -P "${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake"
    COMMENT "Removing what the last install put there")
