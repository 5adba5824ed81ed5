# Writes the headers that users get: nitinol.h and all that it includes, to <out>/nitinol.
#
#     cmake -D source=<root of the sources> -D out=<folder> -D stamp=<file> -P public_headers.cmake
#
# The sources include each other from the root, "core/shape.h". In a user's program that name may be
# the user's, so here each path begins with nitinol/. A header that did not change is not written,
# lest all that includes it be compiled again.

cmake_minimum_required(VERSION 3.25)

set(pending nitinol.h)
set(written "")
while(pending)
  list(POP_FRONT pending header)
  file(READ "${source}/${header}" text)
  # Brackets and semicolons would make lists of the lines.
  string(REGEX MATCHALL "#include \"[a-z0-9_/]+\\.h\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" included "${include}")
    if(NOT included IN_LIST written AND NOT included IN_LIST pending)
      list(APPEND pending "${included}")
    endif()
  endforeach()
  string(REGEX REPLACE "#include \"([a-z0-9_/]+\\.h)\"" "#include \"nitinol/\\1\"" text "${text}")
  set(old "")
  if(EXISTS "${out}/nitinol/${header}")
    file(READ "${out}/nitinol/${header}" old)
  endif()
  if(NOT old STREQUAL text)
    file(WRITE "${out}/nitinol/${header}" "${text}")
  endif()
  list(APPEND written "${header}")
endwhile()

file(GLOB_RECURSE present RELATIVE "${out}/nitinol" "${out}/nitinol/*")
foreach(header IN LISTS present)
  if(NOT header IN_LIST written)
    file(REMOVE "${out}/nitinol/${header}")
  endif()
endforeach()
file(TOUCH "${stamp}")
