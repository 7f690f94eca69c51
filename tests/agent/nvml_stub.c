/* A stand-in for NVIDIA's libnvidia-ml.so.1 whose GPUs are a text file.
 *
 * The file is named by SPOTWRIGHT_NVML_STUB and read again whenever it changes. A line is
 * `key value`. A key holds for the host, for all GPUs (`gpu.util 90`) or for one (`gpu3.util 0`);
 * the last is the stronger. `nvml_stub.py` writes such files.
 *
 *   count            GPUs on the host
 *   wobble           figures swing by this share, so that a demonstration looks alive
 *   generation       when it changes, the driver was reset: every call but init and shutdown
 *                    answers UNKNOWN until NVML was shut down and opened again; counters are 0
 *   error CODE       what every call answers (init and shutdown excepted)
 *   error.CALL CODE  what one call answers, as error.nvmlInitWithFlags 9; also per GPU
 *   error.FIELD CODE what one field of nvmlDeviceGetFieldValues answers, as gpu.error.197 3
 *   delay_ms.CALL N  how long one call takes
 *   hang.CALL 1      one call does not come back until the line is gone
 *   gpu.*            name mem_total_bytes mem_used_bytes util sm_clock_mhz throttle ecc power_mw
 *                    temperature_c pcie_generation pcie_lanes xid xid_count
 *   gpu.pcie_tx_mbps, pcie_rx_mbps, nvlink_tx_mbps, nvlink_rx_mbps
 *                    10^6 bit/s: counters grow with the clock
 *   gpu.pcie_tx_bytes, pcie_rx_bytes, nvlink_tx_kib, nvlink_rx_kib
 *                    counters at fixed values, in place of the four above
 *   gpu.counter_bits counters wrap at this width
 *   gpu.field_type   type that fields claim to have; 3, unsigned long long, unless told
 *
 * -DWITHOUT_<name> leaves a function out, as old drivers do.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, TIMEOUT = 10, GPU_IS_LOST = 15, UNKNOWN = 999 };
enum { TYPE_UNSIGNED_LONG_LONG = 3 };
enum { MOST_GPUS = 64, MOST_LINES = 1024, COUNTERS = 4 };

typedef struct { int index; } Gpu;
typedef struct { char key[64]; char text[128]; double value; } Line;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
typedef union { double d; int i; unsigned u; unsigned long long ull; } Value;
typedef struct {
    unsigned field, scope;
    long long time_us, latency_us;
    unsigned type, answer;
    Value value;
} Field;
typedef struct { Gpu *gpu; unsigned long long type, data; unsigned instance, compute; } Event;
typedef struct { double seen_xid[MOST_GPUS], seen_count[MOST_GPUS]; int registered[MOST_GPUS]; } EventSet;

static const char *const RATES[COUNTERS] = {"pcie_tx_mbps", "pcie_rx_mbps", "nvlink_tx_mbps", "nvlink_rx_mbps"};
static const char *const FIXED[COUNTERS] = {"pcie_tx_bytes", "pcie_rx_bytes", "nvlink_tx_kib", "nvlink_rx_kib"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Line lines[MOST_LINES];
static int line_count, opened;
static double opened_generation;
static struct timespec file_time;
static ino_t file_inode;
static Gpu gpus[MOST_GPUS];
static double moved_bytes[MOST_GPUS][COUNTERS], moved_at_s;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const Line *line(const char *key) {
    for (int i = 0; i < line_count; i++)
        if (!strcmp(lines[i].key, key)) return &lines[i];
    return NULL;
}

static const Line *told(int gpu, const char *key) {
    char name[80];
    snprintf(name, sizeof name, "gpu%d.%s", gpu, key);
    const Line *own = line(name);
    if (own) return own;
    snprintf(name, sizeof name, "gpu.%s", key);
    return line(name);
}

static double number(int gpu, const char *key, double otherwise) {
    const Line *found = gpu < 0 ? line(key) : told(gpu, key);
    return found ? found->value : otherwise;
}

static double swing(int gpu) {
    return 1 + number(-1, "wobble", 0) * sin(now_s() / 3 + gpu);
}

static void move_counters(void) {
    double now = now_s(), passed_s = moved_at_s ? now - moved_at_s : 0;
    moved_at_s = now;
    for (int gpu = 0; gpu < MOST_GPUS && gpu < number(-1, "count", 0); gpu++)
        for (int c = 0; c < COUNTERS; c++)
            moved_bytes[gpu][c] += passed_s * number(gpu, RATES[c], 0) * swing(gpu) * 1e6 / 8;
}

static void parse(FILE *file) {
    double before = number(-1, "generation", 0);
    char text[256];
    line_count = 0;
    while (line_count < MOST_LINES && fgets(text, sizeof text, file)) {
        Line *new = &lines[line_count];
        if (sscanf(text, "%63s %127[^\n]", new->key, new->text) != 2) continue;
        new->value = strtod(new->text, NULL);
        line_count++;
    }
    if (number(-1, "generation", 0) != before) memset(moved_bytes, 0, sizeof moved_bytes);
}

/* The caller holds the lock. */
static void refresh(void) {
    const char *path = getenv("SPOTWRIGHT_NVML_STUB");
    struct stat is;
    if (!path || stat(path, &is)) return;
    if (is.st_ino == file_inode && !memcmp(&is.st_mtim, &file_time, sizeof file_time)) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    move_counters();
    parse(file);
    fclose(file);
    file_inode = is.st_ino;
    file_time = is.st_mtim;
}

static double locked_number(int gpu, const char *key, double otherwise) {
    pthread_mutex_lock(&lock);
    double found = number(gpu, key, otherwise);
    if (gpu >= 0 && !told(gpu, key)) found = number(-1, key, otherwise);
    pthread_mutex_unlock(&lock);
    return found;
}

static void locked_refresh(void) {
    pthread_mutex_lock(&lock);
    refresh();
    pthread_mutex_unlock(&lock);
}

static void take_time(int gpu, const char *call) {
    char key[80];
    locked_refresh();
    snprintf(key, sizeof key, "delay_ms.%s", call);
    double delay_ms = locked_number(gpu, key, 0);
    if (delay_ms > 0) usleep((useconds_t)(delay_ms * 1000));
    snprintf(key, sizeof key, "hang.%s", call);
    while (locked_number(gpu, key, 0)) {
        usleep(20000);
        locked_refresh();
    }
}

/* Return what a call answers; gpu < 0: a call about the host. */
static int answer(int gpu, const char *call) {
    char key[80];
    take_time(gpu, call);
    snprintf(key, sizeof key, "error.%s", call);
    int code = (int)locked_number(gpu, key, 0);
    if (code) return code;
    if (!strcmp(call, "nvmlInitWithFlags") || !strcmp(call, "nvmlShutdown")) return OK;
    if (!opened) return UNINITIALIZED;
    if (locked_number(-1, "generation", 0) != opened_generation) return UNKNOWN;
    code = (int)locked_number(gpu, "error", 0);
    if (code) return code;
    return gpu >= locked_number(-1, "count", 0) ? GPU_IS_LOST : OK;
}

/* Figures of a GPU: answer NOT_SUPPORTED where the file does not tell. */
static int figure(Gpu *gpu, const char *call, const char *key, double *found) {
    int code = answer(gpu->index, call);
    if (code) return code;
    pthread_mutex_lock(&lock);
    const Line *is = told(gpu->index, key);
    if (is) *found = is->value;
    pthread_mutex_unlock(&lock);
    return is ? OK : NOT_SUPPORTED;
}

static int unsigned_figure(Gpu *gpu, const char *call, const char *key, unsigned *found) {
    double value = 0;
    int code = figure(gpu, call, key, &value);
    if (!code) *found = (unsigned)value;
    return code;
}

static int text_figure(int gpu, const char *call, const char *text, char *into, unsigned size) {
    int code = answer(gpu, call);
    if (!code) snprintf(into, size, "%s", text);
    return code;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int code = answer(-1, "nvmlInitWithFlags");
    if (code) return code;
    if (!opened++) opened_generation = locked_number(-1, "generation", 0);
    return OK;
}

int nvmlShutdown(void) {
    int code = answer(-1, "nvmlShutdown");
    if (code) return code;
    if (!opened) return UNINITIALIZED;
    opened--;
    return OK;
}

const char *nvmlErrorString(int code) {
    return code == GPU_IS_LOST ? "GPU is lost" : code == UNKNOWN ? "Unknown Error" : "Stub Error";
}

int nvmlSystemGetDriverVersion(char *into, unsigned size) {
    return text_figure(-1, "nvmlSystemGetDriverVersion", "550.54.15", into, size);
}

int nvmlSystemGetNVMLVersion(char *into, unsigned size) {
    return text_figure(-1, "nvmlSystemGetNVMLVersion", "12.550.54.15", into, size);
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    int code = answer(-1, "nvmlDeviceGetCount");
    if (!code) *count = (unsigned)locked_number(-1, "count", 0);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **gpu) {
    if (index >= MOST_GPUS) return GPU_IS_LOST;
    gpus[index].index = (int)index;
    *gpu = &gpus[index];
    return answer((int)index, "nvmlDeviceGetHandleByIndex");
}

int nvmlDeviceGetName(Gpu *gpu, char *into, unsigned size) {
    pthread_mutex_lock(&lock);
    refresh();
    const Line *name = told(gpu->index, "name");
    char text[128];
    snprintf(text, sizeof text, "%s", name ? name->text : "Stub GPU");
    pthread_mutex_unlock(&lock);
    return text_figure(gpu->index, "nvmlDeviceGetName", text, into, size);
}

int nvmlDeviceGetUUID(Gpu *gpu, char *into, unsigned size) {
    char text[64];
    snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", gpu->index);
    return text_figure(gpu->index, "nvmlDeviceGetUUID", text, into, size);
}

int nvmlDeviceGetCurrPcieLinkGeneration(Gpu *gpu, unsigned *found) {
    return unsigned_figure(gpu, "nvmlDeviceGetCurrPcieLinkGeneration", "pcie_generation", found);
}

int nvmlDeviceGetCurrPcieLinkWidth(Gpu *gpu, unsigned *found) {
    return unsigned_figure(gpu, "nvmlDeviceGetCurrPcieLinkWidth", "pcie_lanes", found);
}

int nvmlDeviceGetMaxPcieLinkGeneration(Gpu *gpu, unsigned *found) {
    return unsigned_figure(gpu, "nvmlDeviceGetMaxPcieLinkGeneration", "pcie_generation", found);
}

int nvmlDeviceGetMaxPcieLinkWidth(Gpu *gpu, unsigned *found) {
    return unsigned_figure(gpu, "nvmlDeviceGetMaxPcieLinkWidth", "pcie_lanes", found);
}

#ifndef WITHOUT_nvmlDeviceGetUtilizationRates
int nvmlDeviceGetUtilizationRates(Gpu *gpu, Utilization *found) {
    double value = 0;
    int code = figure(gpu, "nvmlDeviceGetUtilizationRates", "util", &value);
    if (code) return code;
    value = fmin(100, fmax(0, value * swing(gpu->index)));
    *found = (Utilization){(unsigned)value, (unsigned)value / 2};
    return OK;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetMemoryInfo
int nvmlDeviceGetMemoryInfo(Gpu *gpu, Memory *found) {
    double used = 0;
    int code = figure(gpu, "nvmlDeviceGetMemoryInfo", "mem_used_bytes", &used);
    if (code) return code;
    double total = locked_number(gpu->index, "mem_total_bytes", used);
    *found = (Memory){(unsigned long long)total, (unsigned long long)(total - used), (unsigned long long)used};
    return OK;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetClockInfo
int nvmlDeviceGetClockInfo(Gpu *gpu, unsigned clock, unsigned *found) {
    if (clock != 1) return NOT_SUPPORTED; /* 1: the multiprocessors */
    return unsigned_figure(gpu, "nvmlDeviceGetClockInfo", "sm_clock_mhz", found);
}
#endif

static int reasons(Gpu *gpu, const char *call, unsigned long long *found) {
    double value = 0;
    int code = figure(gpu, call, "throttle", &value);
    if (!code) *found = (unsigned long long)value;
    return code;
}

#ifndef WITHOUT_nvmlDeviceGetCurrentClocksEventReasons
int nvmlDeviceGetCurrentClocksEventReasons(Gpu *gpu, unsigned long long *found) {
    return reasons(gpu, "nvmlDeviceGetCurrentClocksEventReasons", found);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetCurrentClocksThrottleReasons
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu *gpu, unsigned long long *found) {
    return reasons(gpu, "nvmlDeviceGetCurrentClocksThrottleReasons", found);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetTotalEccErrors
int nvmlDeviceGetTotalEccErrors(Gpu *gpu, unsigned type, unsigned counter, unsigned long long *found) {
    double value = 0;
    int code = figure(gpu, "nvmlDeviceGetTotalEccErrors", "ecc", &value);
    /* 1: uncorrected; 0: since the driver was loaded. Any other answer would be a wrong figure. */
    if (!code) *found = type == 1 && counter == 0 ? (unsigned long long)value : 4242;
    return code;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetPowerUsage
int nvmlDeviceGetPowerUsage(Gpu *gpu, unsigned *found) {
    int code = unsigned_figure(gpu, "nvmlDeviceGetPowerUsage", "power_mw", found);
    if (!code) *found = (unsigned)(*found * swing(gpu->index));
    return code;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetTemperature
int nvmlDeviceGetTemperature(Gpu *gpu, unsigned sensor, unsigned *found) {
    if (sensor != 0) return NOT_SUPPORTED;
    return unsigned_figure(gpu, "nvmlDeviceGetTemperature", "temperature_c", found);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetTemperatureV
int nvmlDeviceGetTemperatureV(Gpu *gpu, void *question) {
    unsigned found = 0;
    int code = unsigned_figure(gpu, "nvmlDeviceGetTemperatureV", "temperature_c", &found);
    if (!code) ((unsigned *)question)[2] = found; /* version, sensor, temperature */
    return code;
}
#endif

static int counter_of(const Field *field) {
    int all_links = field->scope == UINT32_MAX;
    switch (field->field) {
    case 197: return 0;
    case 198: return 1;
    case 138: return all_links ? 2 : -1;
    case 139: return all_links ? 3 : -1;
    default: return -1;
    }
}

/* Return the answer about one field; the value is in bytes, of NVLink in KiB. */
static unsigned fill(Gpu *gpu, Field *field) {
    char key[32];
    snprintf(key, sizeof key, "error.%u", field->field);
    int code = (int)locked_number(gpu->index, key, 0), counter = counter_of(field);
    if (code) return (unsigned)code;
    if (counter < 0) return NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    move_counters();
    const Line *fixed = told(gpu->index, FIXED[counter]);
    const Line *rate = told(gpu->index, RATES[counter]);
    double bytes = moved_bytes[gpu->index][counter];
    unsigned long long count = fixed ? strtoull(fixed->text, NULL, 10)
                                     : (unsigned long long)(counter < 2 ? bytes : bytes / 1024);
    double bits = number(gpu->index, "counter_bits", 64);
    pthread_mutex_unlock(&lock);
    if (!fixed && !rate) return NOT_SUPPORTED;
    if (bits < 64) count &= (1ULL << (int)bits) - 1;
    field->type = (unsigned)locked_number(gpu->index, "field_type", TYPE_UNSIGNED_LONG_LONG);
    field->value.ull = count;
    return OK;
}

#ifndef WITHOUT_nvmlDeviceGetFieldValues
int nvmlDeviceGetFieldValues(Gpu *gpu, int count, Field *fields) {
    int code = answer(gpu->index, "nvmlDeviceGetFieldValues");
    if (code) return code;
    for (int i = 0; i < count; i++) fields[i].answer = fill(gpu, &fields[i]);
    return OK;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetPcieThroughput
int nvmlDeviceGetPcieThroughput(Gpu *gpu, unsigned direction, unsigned *kb_per_s) {
    double mbps = 0;
    int code = figure(gpu, "nvmlDeviceGetPcieThroughput", RATES[direction ? 1 : 0], &mbps);
    if (!code) *kb_per_s = (unsigned)(mbps * swing(gpu->index) * 1000 / 8);
    return code;
}
#endif

#ifndef WITHOUT_nvmlEventSetCreate
int nvmlEventSetCreate(EventSet **set) {
    int code = answer(-1, "nvmlEventSetCreate");
    if (!code) *set = calloc(1, sizeof **set);
    return code;
}
#endif

int nvmlEventSetFree(EventSet *set) {
    free(set);
    return OK;
}

int nvmlDeviceGetSupportedEventTypes(Gpu *gpu, unsigned long long *types) {
    *types = 8;
    return answer(gpu->index, "nvmlDeviceGetSupportedEventTypes");
}

int nvmlDeviceRegisterEvents(Gpu *gpu, unsigned long long types, EventSet *set) {
    int code = answer(gpu->index, "nvmlDeviceRegisterEvents");
    if (code || !(types & 8)) return code;
    set->registered[gpu->index] = 1;
    set->seen_xid[gpu->index] = locked_number(gpu->index, "xid", 0);
    set->seen_count[gpu->index] = locked_number(gpu->index, "xid_count", 0);
    return OK;
}

int nvmlEventSetWait_v2(EventSet *set, Event *event, unsigned timeout_ms) {
    int code = answer(-1, "nvmlEventSetWait");
    if (code) return code;
    for (int i = 0; i < MOST_GPUS; i++) {
        if (!set->registered[i]) continue;
        double xid = locked_number(i, "xid", 0), count = locked_number(i, "xid_count", 0);
        if (xid == set->seen_xid[i] && count == set->seen_count[i]) continue;
        set->seen_xid[i] = xid;
        set->seen_count[i] = count;
        if (!xid) continue;
        *event = (Event){&gpus[i], 8, (unsigned long long)xid, UINT32_MAX, UINT32_MAX};
        return OK;
    }
    if (timeout_ms) usleep(timeout_ms * 1000);
    return TIMEOUT;
}
