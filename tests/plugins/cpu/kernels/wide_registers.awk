# Reads `objdump -d` of archives and programs. Fails where code outside the objects for wider instruction sets (named avx...) uses AVX
# or AVX-512: it would be an illegal instruction on a CPU without them. Those objects themselves must be seen to use it.
/file format/ {
  wide = $1 ~ /avx/
  if (wide) objects++
}
/%[yz]mm|\tv[a-z0-9]+ +.*%xmm/ {
  if (wide) {
    found++
  } else if (bad++ < 5) {
    print "wide registers outside dispatched code:" $0
  }
}
END {
  print objects " objects for wider instruction sets with " found " lines of AVX; " bad + 0 " lines elsewhere"
  exit bad > 0 || found == 0
}
