/* A driver's library in a container: it sees the GPUs whose files this process may open, and none without the control
   file, as NVML does. A file may be opened unless the container's cgroup forbids it (EPERM): that no driver is behind it
   (ENXIO) is another matter. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { SUCCESS = 0, UNKNOWN = 999 };

static int may_open(const char *path) {
    int file = open(path, O_RDWR);
    if (file >= 0) close(file);
    return file >= 0 || errno == ENXIO;
}
int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return may_open("/dev/nvidiactl") ? SUCCESS : UNKNOWN;
}
int nvmlInit(void) { return nvmlInitWithFlags(0); }
int nvmlDeviceGetCount_v2(unsigned *to) {
    char path[32];
    *to = 0;
    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        *to += may_open(path);
    }
    return SUCCESS;
}
