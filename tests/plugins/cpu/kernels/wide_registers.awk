# Reads `objdump -d` of archives and programs. Fails where code uses instructions that its CPU may lack: AVX outside the objects for wider
# instruction sets (named avx...), AVX-512 (zmm, mask or upper registers) outside those named avx512..., VNNI outside avx512vnni.
# Each kind of object must be seen to use what it is for.
/file format/ {
  level = 0
  if ($1 ~ /avx2/) level = 1
  if ($1 ~ /avx512/) level = 2
  if ($1 ~ /avx512vnni/) level = 3
  if (level) objects++
}
/%[yz]mm|\tv[a-z0-9]+ +.*%xmm/ {
  needs = 1
  if (/%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])/) needs = 2
  if (/\tvpdp/) needs = 3
  found[needs]++
  if (needs > level && bad++ < 5) print "instruction outside the objects of its instruction set:" $0
}
END {
  print objects " objects for wider instruction sets with " found[1] " lines of AVX, " found[2] " of AVX-512, " found[3] " of VNNI; " bad + 0 " lines elsewhere"
  exit bad > 0 || found[1] == 0 || found[2] == 0 || found[3] == 0
}
