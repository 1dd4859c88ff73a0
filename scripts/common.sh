# Shared by the scripts of this folder, which source it first. Messages go to stderr: stdout is for results.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

# --help: the comment at the head of the script.
case ${1:-} in
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "error: $*"
  exit 1
}

# configure DIR [cmake options...]: a build folder, with ccache where there is one. Says nothing unless it fails.
configure() {
  local dir=$1 log
  shift
  command -v ccache >/dev/null && set -- -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache "$@"
  mkdir -p "$dir" || fail "cannot create $dir: make $root writable, or clone the project elsewhere"
  log=$dir/configure.log
  cmake -S "$root" -B "$dir" -G Ninja "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    fail "configuring $dir failed"
  }
}

# build DIR [targets...]: ninja, with its progress on a terminal and silent elsewhere.
build() {
  local dir=$1
  shift
  if [ -t 2 ]; then
    ninja -C "$dir" -j "$jobs" "$@" >&2 || fail "the build in $dir failed"
  else
    ninja -C "$dir" -j "$jobs" --quiet "$@" >&2 || fail "the build in $dir failed"
  fi
}
