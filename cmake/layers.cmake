# One object target per layer, one test program per layer. A new source file is picked up by its
# place in the tree: no list to edit.

find_package(Threads REQUIRED)

# Flags of every target of the project.
add_library(optima_flags INTERFACE)
target_compile_options(optima_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -fno-math-errno -ffp-contract=off
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  # Of gcc 12, -Wrestrict is wrong about std::string (gcc bug 105329), the others about vectors
  # that grow from one item (105562, 107852) or are freed after a loop was unrolled (-O3), or about
  # strings that move into them.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique$<SEMICOLON>-Wno-restrict$<SEMICOLON>-Wno-array-bounds$<SEMICOLON>-Wno-stringop-overflow$<SEMICOLON>-Wno-stringop-overread$<SEMICOLON>-Wno-free-nonheap-object>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The oldest CPU that must run the library; faster code is chosen at run time (kernels/isa.h).
  target_compile_options(optima_flags INTERFACE -march=x86-64-v2)
endif()
target_include_directories(optima_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                                                  ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(optima_flags INTERFACE Threads::Threads)
if(OPTIMA_SANITIZE)
  target_compile_options(optima_flags INTERFACE -fsanitize=${OPTIMA_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all
    # A null pointer shows as a fault of AddressSanitizer; the checks for it are a quarter of the
    # compile time. Nothing here has a use for the others.
    -fno-sanitize=null,vptr,object-size)
  target_link_options(optima_flags INTERFACE -fsanitize=${OPTIMA_SANITIZE})
endif()

# Read once a target instead of once a file: half of the time that a small file takes.
set(OPTIMA_COMMON_HEADERS <algorithm> <array> <memory> <optional> <span> <string>
                          <string_view> <unordered_map> <variant> <vector>)

# optima_layer(NAME [LIBS lib...]): an object target of all .cc files at and below this folder.
function(optima_layer name)
  cmake_parse_arguments(arg "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    add_library(optima_${name} INTERFACE)
    return()
  endif()
  add_library(optima_${name} OBJECT ${sources})
  target_link_libraries(optima_${name} PUBLIC optima_flags PRIVATE ${arg_LIBS})
  if(OPTIMA_SANITIZE STREQUAL thread AND name MATCHES "^(tokenizer|model|graph)$")
    # Immutable once made, and used by one thread until then: there is nothing to find.
    target_compile_options(optima_${name} PRIVATE -fno-sanitize=thread)
  endif()
  if(NOT name STREQUAL kernels)  # whose files have flags of their own, and include next to nothing
    target_precompile_headers(optima_${name} PRIVATE ${OPTIMA_COMMON_HEADERS})
  endif()
  if(OPTIMA_SANITIZE AND NOT name MATCHES "^(tokenizer|model)$")
    # Several files read their headers once: what costs most where little is optimised. Each file
    # by itself is what the other presets compile. Those two layers say the same names in each file.
    set_target_properties(optima_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
  endif()
  set_property(GLOBAL APPEND PROPERTY OPTIMA_LAYERS optima_${name})
  set_property(GLOBAL APPEND PROPERTY OPTIMA_LAYER_LIBS ${arg_LIBS})
endfunction()

# optima_test(NAME LAYERS layer... [LIBS lib...] [HEADERS header...] [SHARDS n] [FILTER filter]): one
# GoogleTest program of all *_test.cc at and below this folder, linked with the objects of the layers
# named and no others. HEADERS are large ones that most of its files include. Its tests, those of
# the filter, are dealt out to n runs: more than one where it runs so long that a core would wait.
function(optima_test name)
  cmake_parse_arguments(arg "" "SHARDS;FILTER" "LAYERS;LIBS;HEADERS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  foreach(layer ${arg_LAYERS})
    target_link_libraries(test_${name} PRIVATE optima_${layer})
  endforeach()
  target_link_libraries(test_${name} PRIVATE optima_flags ${arg_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_precompile_headers(test_${name} PRIVATE <gtest/gtest.h> ${OPTIMA_COMMON_HEADERS}
                                                 ${arg_HEADERS})
  target_compile_definitions(test_${name} PRIVATE
    OPTIMA_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OPTIMA_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(OPTIMA_SANITIZE)  # Instrumented test macros take minutes to optimise; the layers stay at -O1.
    target_compile_options(test_${name} PRIVATE -O0)
  endif()
  if(OPTIMA_SANITIZE MATCHES undefined)  # A third of the compile time, to check the tests alone.
    target_compile_options(test_${name} PRIVATE -fno-sanitize=undefined)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(test ${name})
    if(arg_SHARDS GREATER 1)
      set(test ${name}_${shard})
    endif()
    math(EXPR index "${shard} - 1")
    set(environment GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
    if(arg_FILTER)
      list(APPEND environment GTEST_FILTER=${arg_FILTER})
    endif()
    add_test(NAME ${test} COMMAND test_${name})
    set_tests_properties(${test} PROPERTIES TIMEOUT 900 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
