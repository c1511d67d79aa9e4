# What runs in the private mount and PID namespaces of a container: makes its disk, then boots it, and boots it
# again as long as its owner asks for that. Called by container.py:
#   boot.sh FOLDER TREE NAME POLKIT [USER UID HOME LINGERS]... -- NSPAWN-ARGUMENT...
set -eu
folder=$1 tree=$2 name=$3 polkit=$4
shift 4

if [ -e /sys/fs/cgroup/unified/cgroup.procs ]; then
    # A machine with hybrid cgroups: show the container pure version 2, as a current desktop has it.
    umount -R /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
# A cgroup of its own: with --keep-unit two containers would share ./payload of the caller's.
for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    if [ -e "$hierarchy/cgroup.procs" ]; then
        mkdir -p "$hierarchy/$name"
        echo $$ >"$hierarchy/$name/cgroup.procs"
    fi
done

mount -t tmpfs -o mode=755,size=2g rig "$folder/disk"
mkdir "$folder/disk/upper" "$folder/disk/work" "$folder/disk/root" "$folder/disk/nspawn"
mkdir -p /run/systemd/nspawn
mount --bind "$folder/disk/nspawn" /run/systemd/nspawn  # nspawn's locks: nothing of ours among the machine's
mount -t overlay overlay -o "lowerdir=$tree,upperdir=$folder/disk/upper,workdir=$folder/disk/work" "$folder/disk/root"
root=$folder/disk/root

rm -f "$root/etc/machine-id"
systemd-id128 new >"$root/etc/machine-id"
rm -rf "$root/var/log/journal"
mkdir -p "$root/var/log/journal"  # persistent: only then has a user a journal of its own
mkdir -p "$root/etc/systemd/system" "$root/var/lib/systemd/linger"
rm -f "$root"/var/lib/systemd/linger/*

# Nothing runs but what a bare Debian starts: not what somebody has enabled on this machine, and not what the tests
# have no use for, which is half of the time that a boot takes.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/user/*.wants "$root/etc/fstab" "$root/etc/crypttab"
mask() {
    ln -sfn /dev/null "$root/etc/systemd/system/$1"
}
for unit in systemd-journal-catalog-update systemd-update-utmp systemd-update-utmp-runlevel ldconfig \
    systemd-hwdb-update systemd-firstboot; do
    mask "$unit.service"
done
# Who logs out loses the manager 10 s later; that is long for a test.
mkdir -p "$root/etc/systemd/logind.conf.d"
printf '[Login]\nUserStopDelaySec=1\n' >"$root/etc/systemd/logind.conf.d/rig.conf"
[ "$polkit" = yes ] || mask polkit.service

while [ "$1" != -- ]; do
    user=$1 uid=$2 home=$3 lingers=$4
    shift 4
    chroot "$root" useradd --create-home --uid "$uid" --home-dir "$home" --shell /bin/bash "$user"
    [ "$lingers" = no ] || : >"$root/var/lib/systemd/linger/$user"
done
shift

while :; do
    # --notify-ready: tells NOTIFY_SOCKET the leader's pid and, once the container has booted, READY=1.
    status=0
    systemd-nspawn --directory="$root" --machine="$name" --boot --register=no --keep-unit --private-network \
        --notify-ready=yes --console=pipe --kill-signal=SIGRTMIN+3 --resolv-conf=off --timezone=off \
        --link-journal=no "$@" || status=$?
    rm "$folder/again" 2>/dev/null || exit "$status"
done
