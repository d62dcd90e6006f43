/* A driver's library as NVML's manual describes its interface, for machines without one.
   STUB_GPUS lists the GPUs by their condition, such as "ok,lost,mig"; neighbours 2i and 2i+1 share NVLink. Where it
   names a file, that holds the list, so that GPUs can change between two asks. STUB_DRIVER: such as "580.65.06 13000".
   The condition "hang" waits for ever in a call about that GPU, the whole list "init-hang" in the first call of all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, NOT_LOADED = 9, LOST = 15 };
typedef struct { char word[32]; int index; } gpu;
static gpu gpus[16];
static unsigned count;
static char driver[64] = "580.65.06";
static int cuda = 13000;

#define IS(handle, condition) (strcmp(((gpu *)(handle))->word, condition) == 0)
#define ANSWER(handle, place, value) \
    do { if (IS(handle, "lost")) return LOST; *(place) = (value); return SUCCESS; } while (0)

int nvmlInitWithFlags(unsigned flags) {
    const char *text = getenv("STUB_GPUS");
    (void)flags;
    if (!text) return NOT_LOADED;
    char list[512] = "";
    if (*text == '/') {
        FILE *file = fopen(text, "r");
        if (!file || !fgets(list, sizeof list, file)) return NOT_LOADED;
        fclose(file);
        text = list;
    }
    if (strcmp(text, "init-hang") == 0) for (;;) pause();
    if (getenv("STUB_DRIVER")) sscanf(getenv("STUB_DRIVER"), "%63s %d", driver, &cuda);
    char *copy = strdup(text), *rest = copy, *word;
    for (count = 0; (word = strsep(&rest, ",")) && *word; count++) {
        snprintf(gpus[count].word, sizeof gpus[count].word, "%s", word);
        gpus[count].index = (int)count;
    }
    free(copy);
    return SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : code == NOT_LOADED ? "Driver Not Loaded" : "Error"; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = count; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **to) {
    if (strcmp(gpus[index].word, "unopened") == 0) return LOST;
    *to = &gpus[index];
    return SUCCESS;
}
int nvmlDeviceGetUUID(gpu *g, char *to, unsigned size) { snprintf(to, size, "GPU-%c", 'a' + g->index); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { snprintf(to, size, "%s", driver); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = cuda; return SUCCESS; }
int nvmlDeviceGetCudaComputeCapability(gpu *g, int *major, int *minor) { *minor = 0; ANSWER(g, major, IS(g, "old") ? 7 : 9); }
int nvmlDeviceGetName(gpu *g, char *to, unsigned size) {
    if (IS(g, "lost")) return LOST;
    if (IS(g, "hang")) for (;;) pause();
    snprintf(to, size, IS(g, "small") ? "Stub 24GB" : "Stub 80GB");
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(gpu *g, unsigned long long to[3]) {
    if (IS(g, "lost")) return LOST;
    if (IS(g, "shared")) return NOT_SUPPORTED;
    to[0] = 80ull << 30;
    to[1] = 79ull << 30;
    to[2] = 1ull << 30; /* what the driver keeps for itself is "used" here */
    return SUCCESS;
}
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
int nvmlDeviceGetMemoryInfo_v2(gpu *g, memory_v2 *to) {
    if (IS(g, "consumer")) return NOT_SUPPORTED;
    to->used = IS(g, "full") ? 70ull << 30 : 4ull << 20;
    ANSWER(g, &to->total, 80ull << 30);
}
int nvmlDeviceGetMigMode(gpu *g, unsigned *now, unsigned *pending) { *pending = 0; ANSWER(g, now, IS(g, "mig")); }
int nvmlDeviceGetMaxMigDeviceCount(gpu *g, unsigned *to) { ANSWER(g, to, IS(g, "mig") ? 7 : 0); }
int nvmlDeviceGetMigDeviceHandleByIndex(gpu *g, unsigned index, void **to) {
    if (!IS(g, "mig") || index >= 3) return NOT_FOUND;
    *to = g;
    return SUCCESS;
}
int nvmlDeviceGetTotalEccErrors(gpu *g, unsigned type, unsigned counter, unsigned long long *to) {
    if (IS(g, "consumer")) return NOT_SUPPORTED;
    ANSWER(g, to, IS(g, "ecc") && type == 1 && counter == 0 ? 3 : 0);
}
int nvmlDeviceGetRemappedRows(gpu *g, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    *corrected = *uncorrected = 0;
    *failed = IS(g, "worn");
    ANSWER(g, pending, IS(g, "rows"));
}
int nvmlDeviceGetRetiredPagesPendingStatus(gpu *g, unsigned *to) {
    if (!IS(g, "pages")) return NOT_SUPPORTED;
    ANSWER(g, to, 1);
}
int nvmlDeviceGetComputeMode(gpu *g, unsigned *to) { ANSWER(g, to, IS(g, "prohibited") ? 2 : 0); }
int nvmlDeviceGetPersistenceMode(gpu *g, unsigned *to) { ANSWER(g, to, !IS(g, "drowsy")); }
typedef struct { unsigned pid; unsigned long long bytes; unsigned gpu, compute; } process;
int nvmlDeviceGetComputeRunningProcesses_v3(gpu *g, unsigned *num, process *to) {
    if (!IS(g, "busy")) { *num = 0; return SUCCESS; }
    *num = 2;
    if (!to) return INSUFFICIENT_SIZE;
    to[0] = (process){(unsigned)getppid(), 1 << 30, ~0u, ~0u};
    to[1] = (process){999999999, 1 << 30, ~0u, ~0u};
    return SUCCESS;
}
typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    int result;
    union { double d; unsigned u; unsigned long long ull; } value;
} field_value;
int nvmlDeviceGetFieldValues(gpu *g, int num, field_value *to) {
    for (int i = 0; i < num; i++) { to[i].result = SUCCESS; to[i].value.u = IS(g, "xid") ? 1 : 0; }
    return SUCCESS;
}
int nvmlDeviceGetP2PStatus(gpu *a, gpu *b, unsigned kind, unsigned *to) {
    *to = kind == 2 && a->index / 2 == b->index / 2 ? 0 : 5;
    return SUCCESS;
}
int nvmlDeviceGetTopologyCommonAncestor(gpu *a, gpu *b, unsigned *to) { *to = a->index / 4 == b->index / 4 ? 20 : 50; return SUCCESS; }
