# What an installed copy has: the library, its headers, a pkg-config file, a CMake package and the
# licence. Both packages find the library relative to themselves, so the prefix may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS sitsoptima EXPORT sitsoptima
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/include/optima/optima.h
              ${PROJECT_SOURCE_DIR}/include/optima/optima_unstable.h
              ${PROJECT_SOURCE_DIR}/include/optima/optima.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/optima COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/optima/cpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/optima COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH OPTIMA_PREFIX_FROM_PKGCONFIG
  ${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir} ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/sits-optima.pc.in
  ${PROJECT_BINARY_DIR}/sits-optima.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sits-optima.pc
  DESTINATION ${pkgconfig_dir} COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sitsoptima)
install(EXPORT sitsoptima NAMESPACE sitsoptima:: FILE sitsoptimaConfig.cmake
  DESTINATION ${package_dir} COMPONENT development)
# A minor release only adds: any package of the same major version that is not older will do.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sitsoptimaConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sitsoptimaConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)
