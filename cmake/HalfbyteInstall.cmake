# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where, and the files by which other builds find it.
include(CMakePackageConfigHelpers)
