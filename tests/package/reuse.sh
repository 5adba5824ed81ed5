#!/bin/bash
# reuse.sh <compiler> <arguments>: compiles, unless the folder REUSED_BUILD has the object already.
#
# For builds that differ from that one in how objects are linked, not in how they are compiled: an
# object is taken only if the flags that decide about code are the same. What differs between a
# static and a shared library, but for flags, is in jit_loader.cpp and behind NITINOL_LLVM_RESERVE.
set -euo pipefail

build=$REUSED_BUILD
object='' source='' depfile=''
for ((i = 1; i < $#; ++i)); do
  next=$((i + 1))
  case ${!i} in
    -o) object=${!next} ;;
    -c) source=${!next} ;;
    -MF) depfile=${!next} ;;
  esac
done

# -fopenmp decides in parallel.cpp only, which has it in both.
deciding() { tr ' ' '\n' | grep -E '^-(f|O|g|m|std)' | grep -vx -- -fopenmp | sort; }

# Several files compiled as one are a list of them.
parts=("$source")
[[ $source != */Unity/* ]] || mapfile -t parts < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$source")

name=${object#*nitinol.dir/}
name=${name#*nitinol_llvm.dir/}
for target in nitinol nitinol_llvm; do
  existing=$build/CMakeFiles/$target.dir/$name
  [[ $object == */nitinol*.dir/*.o && -f $existing && "${parts[*]}" != */jit_loader.cpp* ]] || continue
  ! grep -q NITINOL_LLVM_RESERVE "${parts[@]}" "${parts[@]/%.cpp/.h}" 2>/dev/null || continue
  before=$(grep -F -- "-o CMakeFiles/$target.dir/$name -c" "$build/compile_commands.json" | deciding)
  [[ $before == "$(echo "$*" | deciding)" ]] || continue
  cp "$existing" "$object"
  [[ -z $depfile ]] || printf '%s:\n' "$object" >"$depfile"
  exit 0
done
exec "$@"
