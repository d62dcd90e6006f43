/* A driver's library as NVML's manual describes its interface, for machines without one.
   STUB_GPUS lists the GPUs by their condition, such as "ok,lost,mig"; neighbours 2i and 2i+1 share NVLink. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, NOT_LOADED = 9, LOST = 15 };
typedef struct { char word[32]; int index; } gpu;
static gpu gpus[16];
static unsigned count;

#define IS(handle, condition) (strcmp(((gpu *)(handle))->word, condition) == 0)
#define ANSWER(handle, place, value) \
    do { if (IS(handle, "lost")) return LOST; *(place) = (value); return SUCCESS; } while (0)

int nvmlInitWithFlags(unsigned flags) {
    const char *text = getenv("STUB_GPUS");
    (void)flags;
    if (!text) return NOT_LOADED;
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
int nvmlDeviceGetName(gpu *g, char *to, unsigned size) {
    if (IS(g, "lost")) return LOST;
    snprintf(to, size, "Stub 80GB");
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(gpu *g, unsigned long long to[3]) {
    if (IS(g, "lost")) return LOST;
    if (IS(g, "shared")) return NOT_SUPPORTED;
    to[0] = 80ull << 30;
    to[1] = to[2] = 0;
    return SUCCESS;
}
int nvmlDeviceGetMigMode(gpu *g, unsigned *now, unsigned *pending) { *pending = 0; ANSWER(g, now, IS(g, "mig")); }
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
int nvmlDeviceGetComputeRunningProcesses_v3(gpu *g, unsigned *num, void *to) {
    if (!IS(g, "busy")) { *num = 0; return SUCCESS; }
    if (!to) { *num = 2; return INSUFFICIENT_SIZE; }
    *num = 2;
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
