#!/bin/sh
# In the place of `nvidia-container-runtime-hook prestart`: makes the device files that the container's environment names,
# lets its cgroup open them, and binds the driver's library, as NVIDIA's hook does and behind the engine's back as it is.
# The files have the driver's own number (195) where it can; no driver needs to be there.
set -eu
state=$(cat)
bundle=$(printf %s "$state" | sed 's/.*"bundle":"\([^"]*\)".*/\1/')
pid=$(printf %s "$state" | sed 's/.*"pid":\([0-9]*\).*/\1/')
config=$(cat "$bundle/config.json")
gpus=$(printf %s "$config" | sed 's/.*"NVIDIA_VISIBLE_DEVICES=\([^"]*\)".*/\1/')
root=$(printf %s "$config" | sed 's/.*"root":{"path":"\([^"]*\)".*/\1/')
cgroup=/sys/fs/cgroup/devices$(sed -n 's/^[0-9]*:devices://p' "/proc/$pid/cgroup")
library=/usr/lib/$(uname -m)-linux-gnu/libnvidia-ml.so.1

give() {
    number="195 $2"
    if [ -w "$cgroup/devices.allow" ]; then
        echo "c 195:$2 rw" >"$cgroup/devices.allow"
    else
        # In the second version of cgroups a rule is a program, and a container may open /dev/null without one.
        number="1 3"
    fi
    nsenter --target "$pid" --mount sh -c "mknod '$root/dev/$1' c $number && chmod 666 '$root/dev/$1'"
}

give nvidiactl 255
IFS=,
for gpu in $gpus; do
    # GPU-a is number 0, as the library on the host says.
    place=$(($(printf %d "'${gpu#GPU-}") - 97))
    give "nvidia$place" "$place"
done
nsenter --target "$pid" --mount sh -c "touch '$root$library' && mount --bind '${0%/*}/libnvidia-ml.so.1' '$root$library'"
