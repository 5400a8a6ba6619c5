#!/usr/bin/env bash
# usage: tools/bochs.sh <NAME=value>... <program> [argument]...
# Runs a statically linked program as the first process of a Linux in Bochs, which emulates a CPU with AVX-512
# on any machine, about a hundred times slower. Prints what the program prints and ends with its exit status.
# tools/setup.sh avx512 brings what it needs.
set -euo pipefail

parts=$(cd "$(dirname "$0")/.." && pwd)/build/bochs
kernel=$(ls "$parts"/boot/vmlinuz-* | tail -n 1)
environment=()
while [[ ${1:-} == *=* ]]; do
    environment+=("$1")
    shift
done
program=$1
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/disc" "$work/root"

# The first process: the program, then its status, and after the console has printed it the end.
cp "$parts/bin/busybox" "$work/root/busybox"
cp "$program" "$work/root/program"
cat >"$work/root/init" <<INIT
#!/busybox sh
/busybox env ${environment[*]@Q} /program ${*@Q}
echo "exit status: \$?"
/busybox sleep 1
/busybox reboot -f
INIT
chmod +x "$work/root/init"
(cd "$work/root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/disc/initrd"

cp "$kernel" "$work/disc/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$work/disc/"
cat >"$work/disc/isolinux.cfg" <<'DISC'
default tarn
label tarn
kernel /vmlinuz
append initrd=/initrd console=ttyS0 quiet loglevel=1 mitigations=off clearcpuid=xsavec,xsaves reboot=triple
DISC
xorriso -as mkisofs -quiet -b isolinux.bin -no-emul-boot -boot-load-size 4 -boot-info-table \
    -o "$work/disc.iso" "$work/disc" 2>/dev/null

# Linux reboots by a triple fault, at which this machine ends.
cat >"$work/bochsrc" <<MACHINE
display_library: rfb, options="timeout=0"
cpu: model=corei7_skylake_x, ips=100000000, reset_on_triple_fault=0
clock: sync=none
memory: guest=512, host=512
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$work/disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/console
plugin_ctrl: sb16=0, es1370=0
sound: driver=dummy
log: $work/log
panic: action=fatal
error: action=ignore
MACHINE
touch "$work/console"
tail -f "$work/console" --pid=$$ &
# Debian's Bochs starts in its debugger (c: continue). Its screen is one that nobody needs to look at: a terminal
# that is not read would stop it.
echo c >"$work/commands"
bochs -q -f "$work/bochsrc" -rc "$work/commands" >/dev/null 2>&1 </dev/null || true
sleep 1
kill $!

status=$(sed -n 's/^exit status: \([0-9]*\).*/\1/p' "$work/console")
exit "${status:-125}"
