#!/usr/bin/env bash
# Do the kernels for AVX-512 compute the right thing on a CPU that has it? Where none is at hand:
# boots a small Linux in Bochs, which emulates a whole Skylake-X machine (AVX-512 F, BW, DQ, VL)
# instruction by instruction on any x86, compares there every variant of products with the reference
# on STEPS random shapes and of attention on a twentieth of them, and has the model of
# examples/quickstart.sh count: it must go on rightly. The one instruction of VNNI,
# which that machine lacks (and Linux does not start on the one that has it), is simulated by
# others. Emulation says nothing of speed. Half an hour on one core. Installs what it uses from
# Debian 12 (as root or with sudo); the kernel is unpacked, not installed.
# Usage: tests/long/avx512.sh [STEPS]      (default 100)
set -euo pipefail
cd "$(dirname "$0")/../.."
steps=${1:-100}
# These rows must not be missing.
rows="attention_avx512 attention_split_avx512 read_avx512"
build=build/release
# A prompt on which the best token leads by 1.9 and more at each step (fp32): how activations are rounded
# does not choose the answer. That of quickstart has margins of 0.2.
prompt='1, 2, 3, 4, 5, 6, 7, 8,'
wanted='1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,'

as_root=()
[[ $(id -u) -eq 0 ]] || as_root=(sudo)
tests/install_packages.sh build
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
  --no-install-recommends bochs bochsbios vgabios isolinux syslinux-common xorriso \
  busybox-static cpio libgtest-dev libgmock-dev >/dev/null

[[ -f $build/build.ninja ]] || cmake --preset release
cmake --build --preset release --target optima test_kernels
model=$(examples/get_model.sh smollm2)

work=$(mktemp -d)
bochs_pid=
# Called by the trap.
# shellcheck disable=SC2317
clean_up() {
  [[ -z $bochs_pid ]] || kill "$bochs_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

root=$work/root
mkdir -p "$root"/{bin,proc,dev,tmp} "$work/iso" "$work/deb"
cp /bin/busybox "$root/bin/"
# The programs, and every library that they load, where the loader looks for it.
for file in "$build"/bin/{optima,test_kernels} \
  $(ldd "$build"/bin/{optima,test_kernels} | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
  install -D "$file" "$root/$(realpath -s "$file")"
done
cp "$model" "$root/model.gguf"
cat >"$root/init" <<END
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/null >/dev/ttyS0 2>&1
export TMPDIR=/tmp
echo "[answer]"
$PWD/$build/bin/optima run /model.gguf -p '$prompt' -n 23 2>/dev/null
echo
echo "[end of the answer]"
tests() {
  OPTIMA_TEST_STEPS=\$1 $PWD/$build/bin/test_kernels --gtest_color=no --gtest_filter="\$2"
  echo "[tests ended with \$?]"
}
tests $steps 'RandomShapes.Products*:Isa.*:Probe*'
tests $(((steps + 19) / 20)) 'RandomShapes.Attention*'
echo "[all done]"
while :; do /bin/busybox sleep 60; done
END
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) >"$work/iso/initrd"

kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ { print $2; exit }')
(cd "$work/deb" && apt-get download -qq "$kernel" && dpkg-deb -x ./*.deb .)
cp "$work"/deb/boot/vmlinuz-* "$work/iso/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$work/iso/"
# The emulator's sizes of compacted states are not those that Linux expects: no XSAVES, XSAVEC, PKU.
cat >"$work/iso/isolinux.cfg" <<'END'
default linux
label linux
  kernel vmlinuz
  append initrd=initrd console=ttyS0 panic=-1 quiet nokaslr mitigations=off lsm= noxsaves nopku clearcpuid=515,321,323
END
xorriso -as mkisofs -quiet -o "$work/boot.iso" -b isolinux.bin -c boot.cat -no-emul-boot \
  -boot-load-size 4 -boot-info-table "$work/iso"

cat >"$work/bochsrc" <<END
config_interface: textconfig
display_library: rfb, options="timeout=0"
cpu: model=corei7_skylake_x, count=1, ips=50000000, reset_on_triple_fault=0
clock: sync=none
memory: guest=2048, host=2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0-master: type=cdrom, path=$work/boot.iso, status=inserted
boot: cdrom
sound: driver=dummy
plugin_ctrl: speaker=0, gameport=0, unmapped=1
com1: enabled=1, mode=file, dev=$work/serial
log: $work/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
END
: >"$work/serial"
echo c | bochs -q -f "$work/bochsrc" >"$work/bochs.out" 2>&1 &
bochs_pid=$!
tail -f "$work/serial" --pid "$bochs_pid" &
until grep -q '^\[all done\]' "$work/serial"; do
  kill -0 "$bochs_pid" 2>/dev/null ||
    { echo "the emulator ended early:"; tail "$work/bochs.out" "$work/bochs.log"; exit 1; }
  sleep 2
done

tr -d '\r' <"$work/serial" >"$work/said"
answer="$prompt$(sed -n '/^\[answer\]$/,/^\[end of the answer\]$/p' "$work/said" | sed '1d;$d')"
[[ $answer == "$wanted" ]] || { echo "answered: $answer"; echo "wanted: $wanted"; exit 1; }
[[ $(grep -c '^\[tests ended with 0\]$' "$work/said") -eq 2 ]] || { echo "tests failed"; exit 1; }
for row in $rows; do
  if grep "NOT RUN.* $row:" "$work/said"; then exit 1; fi
done
echo "AVX-512: passed"
