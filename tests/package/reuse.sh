#!/bin/bash
# reuse.sh <compiler> <arguments>: compiles, unless the folder REUSED_BUILD has the object already.
#
# For builds that differ from that one in how objects are linked, not in how they are compiled: an
# object is taken only if the flags that decide about code are the same; and so must be definitions of
# NITINOL_LLVM_..., of which a static library has others, where a file knows them.
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
deciding() { tr ' ' '\n' | grep -E "^-(f|O|g|m|std$1)" | grep -vx -- -fopenmp | tr -d '\\"' | sort; }

# Several files compiled as one are a list of them.
parts=("$source")
[[ $source != */Unity/* ]] || mapfile -t parts < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$source")

more=''
! grep -q NITINOL_LLVM_ "${parts[@]}" "${parts[@]/%.cpp/.h}" 2>/dev/null || more='|DNITINOL_LLVM_'

name=${object#*nitinol.dir/}
name=${name#*nitinol_llvm.dir/}
for target in nitinol nitinol_llvm; do
  existing=$build/CMakeFiles/$target.dir/$name
  [[ $object == */nitinol*.dir/*.o && -f $existing ]] || continue
  before=$(grep -F -- "-o CMakeFiles/$target.dir/$name -c" "$build/compile_commands.json" | deciding "$more")
  [[ $before == "$(echo "$*" | deciding "$more")" ]] || continue
  cp "$existing" "$object"
  [[ -z $depfile ]] || printf '%s:\n' "$object" >"$depfile"
  exit 0
done
exec "$@"
