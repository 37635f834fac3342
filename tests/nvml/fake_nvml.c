/*
 * A stand-in for libnvidia-ml.so.1, so that the real pynvml can be tested on machines without a GPU.
 *
 * It answers from the key=value file that $FAKE_NVML names (written by fakenvml.py, which documents
 * the keys). One rule covers everything that is left out: what the file does not say, the GPU does
 * not support (NVML_ERROR_NOT_SUPPORTED), as with the real library on a card that lacks a feature.
 *
 * The functions are those that pynvml 13 resolves for what dsdoctor asks, with the struct layouts of
 * nvml.h. A driver that is too old to have some of them is built with a linker version script.
 *
 * With $FAKE_NVML_LIVE set, a file that was replaced while the process runs is read again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) int

enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    VERSION_MISMATCH = 25,
    UNKNOWN = 999
};
enum { MAX_GPUS = 64, MAX_MIG = 16, MAX_PROCESSES = 64, KEY = 256 };

typedef struct {
    int gpu;
    int mig; /* -1: the whole GPU */
} Device;

typedef unsigned long long u64;

/* ---- the scenario -------------------------------------------------------------------------- */

typedef struct {
    char *key;
    char *value;
} Entry;

static Entry *entries;
static size_t entry_count;
static int loaded;
static int initialised;
static Device devices[MAX_GPUS][MAX_MIG + 1];

static int by_key(const void *a, const void *b)
{
    return strcmp(((const Entry *)a)->key, ((const Entry *)b)->key);
}

static void load(void)
{
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char *line = NULL;
    size_t room = 0, capacity = 0;
    ssize_t length;

    loaded = 1;
    if (!file) {
        /* Better a loud stop than a test that passes on an empty machine. */
        fprintf(stderr, "fake_nvml: cannot read $FAKE_NVML (%s)\n", path ? path : "not set");
        abort();
    }
    while ((length = getline(&line, &room, file)) > 0) {
        char *equals = strchr(line, '=');
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        if (!equals)
            continue;
        *equals = '\0';
        if (entry_count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            entries = realloc(entries, capacity * sizeof *entries);
            if (!entries)
                abort();
        }
        entries[entry_count].key = strdup(line);
        entries[entry_count++].value = strdup(equals + 1);
    }
    free(line);
    fclose(file);
    qsort(entries, entry_count, sizeof *entries, by_key);
}

/* The scenario as it is now: a machine that changes while somebody watches it. */
static void refresh(void)
{
    static struct timespec seen;
    static ino_t number;
    struct stat now;

    if (!getenv("FAKE_NVML_LIVE") || stat(getenv("FAKE_NVML"), &now))
        return;
    if (number && (now.st_ino != number || now.st_mtim.tv_nsec != seen.tv_nsec)) {
        entries = NULL; /* a test is short: what was read before is not freed */
        entry_count = 0;
        load();
    }
    number = now.st_ino;
    seen = now.st_mtim;
}

static const char *look(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *look(const char *format, ...)
{
    char key[KEY];
    Entry wanted = {key, NULL};
    Entry *found;
    va_list args;

    va_start(args, format);
    vsnprintf(key, sizeof key, format, args);
    va_end(args);
    found = entry_count ? bsearch(&wanted, entries, entry_count, sizeof *entries, by_key) : NULL;
    return found ? found->value : NULL;
}

/* The value of a key of this device: gpus.3.KEY, or gpus.3.mig_devices.0.KEY for a slice. */
static const char *of(const Device *device, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static const char *of(const Device *device, const char *format, ...)
{
    char key[KEY / 2];
    va_list args;

    va_start(args, format);
    vsnprintf(key, sizeof key, format, args);
    va_end(args);
    if (device->mig < 0)
        return look("gpus.%d.%s", device->gpu, key);
    return look("gpus.%d.mig_devices.%d.%s", device->gpu, device->mig, key);
}

static u64 to_u64(const char *text)
{
    return *text == '-' ? (u64)strtoll(text, NULL, 0) : strtoull(text, NULL, 0);
}

static u64 number_or(const char *text, u64 otherwise)
{
    return text ? to_u64(text) : otherwise;
}

/* ---- what every call does first: log, be late, hang, fail ------------------------------------ */

static void pause_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    /* A driver stuck in the kernel is not interrupted by a signal handler of Python's either. */
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

/* `verb.FN@gpu`, else `verb.*@gpu`, else `verb.FN`, else `verb.*`. */
static const char *injected(const char *verb, const char *function, int gpu)
{
    const char *value = NULL;

    if (gpu >= 0) {
        value = look("%s.%s@%d", verb, function, gpu);
        if (!value)
            value = look("%s.*@%d", verb, gpu);
    }
    if (!value)
        value = look("%s.%s", verb, function);
    return value ? value : look("%s.*", verb);
}

static int enter_gpu(const char *function, int gpu)
{
    const char *value;

    if (!loaded)
        load();
    refresh();
    if ((value = look("log"))) {
        char line[KEY];
        int size = gpu < 0 ? snprintf(line, sizeof line, "%s\n", function)
                           : snprintf(line, sizeof line, "%s %d\n", function, gpu);
        int log = open(value, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (log < 0 || write(log, line, (size_t)size) != size)
            abort();
        close(log);
    }
    if ((value = injected("slow_ms", function, gpu)))
        pause_for(atof(value) / 1000);
    if ((value = injected("hang", function, gpu))) {
        if (look("hang_deaf")) {
            sigset_t all;
            sigfillset(&all);
            sigprocmask(SIG_SETMASK, &all, NULL);
        }
        pause_for(atof(value));
    }
    if ((value = injected("fail", function, gpu)))
        return atoi(value);
    return OK;
}

static int known(const Device *device)
{
    const char *address = (const char *)device, *first = (const char *)devices;

    return address >= first && address < first + sizeof devices;
}

static int enter(const char *function, const Device *device)
{
    if (!initialised)
        return UNINITIALIZED;
    if (!known(device))
        return INVALID_ARGUMENT;
    return enter_gpu(function, device->gpu);
}

static int enter_both(const char *function, const Device *first, const Device *second)
{
    const char *lost;
    int failed = enter(function, first);

    if (failed)
        return failed;
    if (!known(second))
        return INVALID_ARGUMENT;
    lost = look("fail.*@%d", second->gpu);
    return lost ? atoi(lost) : OK;
}

#define ENTER(function, device)                    \
    do {                                           \
        int failed_ = enter(function, device);     \
        if (failed_)                               \
            return failed_;                        \
    } while (0)

#define ENTER_SYSTEM(function)                     \
    do {                                           \
        int failed_ = enter_gpu(function, -1);     \
        if (failed_)                               \
            return failed_;                        \
        if (!initialised)                          \
            return UNINITIALIZED;                  \
    } while (0)

static int put_text(const char *text, char *out, size_t size)
{
    if (!text)
        return NOT_SUPPORTED;
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}

#define GET(function, type, key)                                  \
    API function(Device *device, type *out)                       \
    {                                                             \
        const char *text;                                         \
        ENTER(#function, device);                                 \
        if (!(text = of(device, key)))                            \
            return NOT_SUPPORTED;                                 \
        *out = (type)to_u64(text);                                \
        return OK;                                                \
    }

#define GET_PAIR(function, type, key1, key2)                      \
    API function(Device *device, type *out1, type *out2)          \
    {                                                             \
        const char *text1, *text2;                                \
        ENTER(#function, device);                                 \
        text1 = of(device, key1);                                 \
        text2 = of(device, key2);                                 \
        if (!text1 || !text2)                                     \
            return NOT_SUPPORTED;                                 \
        *out1 = (type)to_u64(text1);                              \
        *out2 = (type)to_u64(text2);                              \
        return OK;                                                \
    }

#define GET_TEXT(function, key)                                   \
    API function(Device *device, char *out, unsigned size)        \
    {                                                             \
        ENTER(#function, device);                                 \
        return put_text(of(device, key), out, size);              \
    }

/* ---- the system ----------------------------------------------------------------------------- */

static int init(const char *function)
{
    int failed = enter_gpu(function, -1);

    /* Whatever spelling the caller uses, `fail.nvmlInit` and `hang.nvmlInit` reach it. */
    if (!failed && strcmp(function, "nvmlInit") != 0)
        failed = enter_gpu("nvmlInit", -1);
    if (failed)
        return failed;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++)
        for (int slot = 0; slot <= MAX_MIG; slot++)
            devices[gpu][slot] = (Device){gpu, slot - 1};
    initialised++;
    return OK;
}

API nvmlInit(void) { return init("nvmlInit"); }
API nvmlInit_v2(void) { return init("nvmlInit_v2"); }
API nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return init("nvmlInitWithFlags");
}

API nvmlShutdown(void)
{
    ENTER_SYSTEM("nvmlShutdown");
    initialised--;
    return OK;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int code)
{
    static char text[48];

    snprintf(text, sizeof text, "fake NVML error %d", code);
    return text;
}

API nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    ENTER_SYSTEM("nvmlSystemGetDriverVersion");
    return put_text(look("driver"), out, size);
}

API nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    ENTER_SYSTEM("nvmlSystemGetNVMLVersion");
    return put_text(look("nvml"), out, size);
}

static int cuda_version(int *out)
{
    const char *text = look("cuda");

    if (!text)
        return NOT_SUPPORTED;
    *out = atoi(text);
    return OK;
}

API nvmlSystemGetCudaDriverVersion(int *out)
{
    ENTER_SYSTEM("nvmlSystemGetCudaDriverVersion");
    return cuda_version(out);
}

API nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    ENTER_SYSTEM("nvmlSystemGetCudaDriverVersion_v2");
    return cuda_version(out);
}

API nvmlDeviceGetCount_v2(unsigned *out)
{
    ENTER_SYSTEM("nvmlDeviceGetCount_v2");
    *out = (unsigned)number_or(look("gpus.#"), 0);
    return OK;
}

/* ---- handles -------------------------------------------------------------------------------- */

static int handle_of(const char *function, unsigned index, Device **out)
{
    int failed;

    if (!initialised)
        return UNINITIALIZED;
    if (index >= number_or(look("gpus.#"), 0) || index >= MAX_GPUS)
        return INVALID_ARGUMENT;
    if ((failed = enter_gpu(function, (int)index)))
        return failed;
    *out = &devices[index][0];
    return OK;
}

API nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out)
{
    return handle_of("nvmlDeviceGetHandleByIndex_v2", index, out);
}

static int handle_where(const char *function, const char *key, const char *value, Device **out)
{
    for (unsigned gpu = 0; gpu < number_or(look("gpus.#"), 0); gpu++) {
        const char *text = look("gpus.%u.%s", gpu, key);
        if (text && strcasecmp(text, value) == 0)
            return handle_of(function, gpu, out);
    }
    return NOT_FOUND;
}

API nvmlDeviceGetHandleByUUID(const char *uuid, Device **out)
{
    return handle_where("nvmlDeviceGetHandleByUUID", "uuid", uuid, out);
}

API nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device **out)
{
    return handle_where("nvmlDeviceGetHandleByPciBusId_v2", "pci_bus_id", bus_id, out);
}

API nvmlDeviceGetIndex(Device *device, unsigned *out)
{
    ENTER("nvmlDeviceGetIndex", device);
    *out = (unsigned)device->gpu;
    return OK;
}

/* ---- identity ------------------------------------------------------------------------------- */

GET_TEXT(nvmlDeviceGetName, "name")
GET_TEXT(nvmlDeviceGetUUID, "uuid")
GET_TEXT(nvmlDeviceGetSerial, "serial")
GET_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
GET(nvmlDeviceGetBrand, unsigned, "brand")
GET(nvmlDeviceGetArchitecture, unsigned, "architecture")
GET(nvmlDeviceGetMinorNumber, unsigned, "minor_number")
GET(nvmlDeviceGetMultiGpuBoard, unsigned, "multi_gpu_board")
GET_PAIR(nvmlDeviceGetCudaComputeCapability, int, "cc_major", "cc_minor")

typedef struct {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;

static int put_pci(const char *bus_id, const char *device_id, const char *subsystem, PciInfo *out)
{
    unsigned function;

    memset(out, 0, sizeof *out);
    if (!bus_id)
        return NOT_SUPPORTED;
    if (sscanf(bus_id, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) != 4)
        return UNKNOWN;
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.%X", out->domain, out->bus,
             out->device, function & 7);
    snprintf(out->legacy_bus_id, sizeof out->legacy_bus_id, "%04X:%02X:%02X.%X",
             out->domain & 0xffff, out->bus & 0xff, out->device & 0xff, function & 7);
    out->device_id = (unsigned)number_or(device_id, 0);
    out->subsystem_id = (unsigned)number_or(subsystem, 0);
    return OK;
}

API nvmlDeviceGetPciInfo_v3(Device *device, PciInfo *out)
{
    ENTER("nvmlDeviceGetPciInfo_v3", device);
    return put_pci(of(device, "pci_bus_id"), of(device, "pci_device_id"),
                   of(device, "pci_subsystem_id"), out);
}

/* ---- memory --------------------------------------------------------------------------------- */

typedef struct {
    u64 total, free, used;
} Memory;

typedef struct {
    unsigned version;
    u64 total, reserved, free, used;
} Memory2;

static int memory_of(const Device *device, Memory2 *out)
{
    const char *total = of(device, "memory_total");

    if (!total)
        return NOT_SUPPORTED;
    out->total = to_u64(total);
    out->reserved = number_or(of(device, "memory_reserved"), 0);
    out->used = number_or(of(device, "memory_used"), 0);
    out->free = out->total - out->reserved - out->used;
    return OK;
}

API nvmlDeviceGetMemoryInfo(Device *device, Memory *out)
{
    Memory2 all;
    int failed;

    ENTER("nvmlDeviceGetMemoryInfo", device);
    if ((failed = memory_of(device, &all)))
        return failed;
    /* Version 1 counts what the driver reserves as used. */
    *out = (Memory){all.total, all.free, all.used + all.reserved};
    return OK;
}

API nvmlDeviceGetMemoryInfo_v2(Device *device, Memory2 *out)
{
    ENTER("nvmlDeviceGetMemoryInfo_v2", device);
    if (out->version != (2u << 24 | sizeof *out))
        return VERSION_MISMATCH;
    return memory_of(device, out);
}

API nvmlDeviceGetBAR1MemoryInfo(Device *device, Memory *out)
{
    const char *total;

    ENTER("nvmlDeviceGetBAR1MemoryInfo", device);
    if (!(total = of(device, "bar1_total")))
        return NOT_SUPPORTED;
    out->total = to_u64(total);
    out->used = number_or(of(device, "bar1_used"), 0);
    out->free = out->total - out->used;
    return OK;
}

/* ---- modes ---------------------------------------------------------------------------------- */

GET(nvmlDeviceGetPersistenceMode, unsigned, "persistence_mode")
GET(nvmlDeviceGetComputeMode, unsigned, "compute_mode")
GET(nvmlDeviceGetDisplayMode, unsigned, "display_mode")
GET(nvmlDeviceGetDisplayActive, unsigned, "display_active")
GET(nvmlDeviceGetVirtualizationMode, unsigned, "virtualization_mode")

typedef struct {
    unsigned code, state;
    char info[128], product[128];
    unsigned enabled, year;
    unsigned short month, day, hour, minute, second;
    unsigned char status;
} Feature;

typedef struct {
    int supported;
    unsigned count;
    Feature features[3];
} Features;

API nvmlDeviceGetGridLicensableFeatures_v4(Device *device, Features *out)
{
    const char *held;

    ENTER("nvmlDeviceGetGridLicensableFeatures", device);
    memset(out, 0, sizeof *out);
    if (!(held = of(device, "licensed")))
        return OK; /* a GPU that needs no license */
    out->supported = 1;
    out->count = 1;
    out->features[0].code = 4; /* compute */
    out->features[0].state = out->features[0].enabled = (unsigned)to_u64(held);
    return put_text("NVIDIA Virtual Compute Server", out->features[0].product, 128);
}

GET_PAIR(nvmlDeviceGetEccMode, unsigned, "ecc_mode.current", "ecc_mode.pending")
GET_PAIR(nvmlDeviceGetMigMode, unsigned, "mig_mode.current", "mig_mode.pending")
GET_PAIR(nvmlDeviceGetGspFirmwareMode, unsigned, "gsp_firmware.enabled", "gsp_firmware.default")

API nvmlDeviceGetGspFirmwareVersion(Device *device, char *out)
{
    ENTER("nvmlDeviceGetGspFirmwareVersion", device);
    return put_text(of(device, "gsp_firmware.version"), out, 64);
}

/* ---- MIG ------------------------------------------------------------------------------------ */

GET(nvmlDeviceGetMaxMigDeviceCount, unsigned, "max_mig_devices")
GET(nvmlDeviceGetGpuInstanceId, unsigned, "gpu_instance_id")
GET(nvmlDeviceGetComputeInstanceId, unsigned, "compute_instance_id")

API nvmlDeviceIsMigDeviceHandle(Device *device, unsigned *out)
{
    ENTER("nvmlDeviceIsMigDeviceHandle", device);
    *out = device->mig >= 0;
    return OK;
}

API nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **out)
{
    ENTER("nvmlDeviceGetMigDeviceHandleByIndex", device);
    if (device->mig >= 0 || index >= number_or(of(device, "max_mig_devices"), 0) ||
        index >= MAX_MIG)
        return INVALID_ARGUMENT;
    if (!of(device, "mig_devices.%u.uuid", index))
        return NOT_FOUND;
    *out = &devices[device->gpu][index + 1];
    return OK;
}

API nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *device, Device **out)
{
    ENTER("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device);
    if (device->mig < 0)
        return INVALID_ARGUMENT;
    *out = &devices[device->gpu][0];
    return OK;
}

typedef struct {
    unsigned multiprocessors, copy, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
    u64 memory_mib;
} Attributes;

API nvmlDeviceGetAttributes_v2(Device *device, Attributes *out)
{
    const char *slices;

    ENTER("nvmlDeviceGetAttributes_v2", device);
    if (!(slices = of(device, "gpu_slices")))
        return NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->gpu_slices = (unsigned)to_u64(slices);
    out->compute_slices = (unsigned)number_or(of(device, "compute_slices"), out->gpu_slices);
    out->multiprocessors = (unsigned)number_or(of(device, "multiprocessors"), 0);
    out->memory_mib = number_or(of(device, "memory_total"), 0) >> 20;
    return OK;
}

/* ---- processes and load ---------------------------------------------------------------------- */

typedef struct {
    unsigned pid;
    u64 used_bytes;
    unsigned gpu_instance, compute_instance;
} Process;

typedef struct {
    unsigned pid;
    u64 used_bytes;
} ProcessV1;

static int processes(const char *function, Device *device, const char *list, unsigned *count,
                     Process *out)
{
    const char *text;
    unsigned room = *count, total;

    ENTER(function, device);
    if (!(text = of(device, "%s.#", list)))
        return NOT_SUPPORTED;
    total = (unsigned)to_u64(text);
    *count = total;
    if (total > room)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < total; i++)
        out[i] = (Process){
            (unsigned)number_or(of(device, "%s.%u.pid", list, i), 0),
            number_or(of(device, "%s.%u.used_bytes", list, i), ~0ull),
            (unsigned)number_or(of(device, "%s.%u.gpu_instance_id", list, i), ~0u),
            (unsigned)number_or(of(device, "%s.%u.compute_instance_id", list, i), ~0u),
        };
    return OK;
}

#define PROCESSES(function, list)                                      \
    API function(Device *device, unsigned *count, Process *out)        \
    {                                                                  \
        return processes(#function, device, list, count, out);         \
    }

/* Version 1, which torch calls where it runs out of memory: no instances of a MIG device. */
API nvmlDeviceGetComputeRunningProcesses(Device *device, unsigned *count, ProcessV1 *out)
{
    Process all[MAX_PROCESSES];
    unsigned room = *count;
    int failed;

    *count = MAX_PROCESSES;
    failed = processes("nvmlDeviceGetComputeRunningProcesses", device, "compute_processes", count, all);
    if (failed)
        return failed;
    if (*count > room)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++)
        out[i] = (ProcessV1){all[i].pid, all[i].used_bytes};
    return OK;
}

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "compute_processes")
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "compute_processes")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics_processes")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics_processes")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps_processes")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps_processes")

API nvmlDeviceGetUtilizationRates(Device *device, unsigned out[2])
{
    const char *gpu, *memory;

    ENTER("nvmlDeviceGetUtilizationRates", device);
    gpu = of(device, "utilization.gpu");
    memory = of(device, "utilization.memory");
    if (!gpu || !memory)
        return NOT_SUPPORTED;
    out[0] = (unsigned)to_u64(gpu);
    out[1] = (unsigned)to_u64(memory);
    return OK;
}

GET(nvmlDeviceGetPerformanceState, unsigned, "performance_state")

static int clock_of(const char *function, Device *device, const char *when, unsigned type,
                    unsigned *out)
{
    static const char *const names[] = {"graphics", "sm", "memory", "video"};
    const char *text;

    ENTER(function, device);
    if (type > 3)
        return INVALID_ARGUMENT;
    if (!(text = of(device, "clocks_mhz.%s.%s", when, names[type])))
        return NOT_SUPPORTED;
    *out = (unsigned)to_u64(text);
    return OK;
}

API nvmlDeviceGetClockInfo(Device *device, unsigned type, unsigned *out)
{
    return clock_of("nvmlDeviceGetClockInfo", device, "current", type, out);
}

API nvmlDeviceGetMaxClockInfo(Device *device, unsigned type, unsigned *out)
{
    return clock_of("nvmlDeviceGetMaxClockInfo", device, "max", type, out);
}

/* ---- health --------------------------------------------------------------------------------- */

GET(nvmlDeviceGetCurrentClocksEventReasons, u64, "event_reasons")
GET(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "event_reasons")
GET(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, "retired_pages.pending")
GET(nvmlDeviceGetPowerUsage, unsigned, "power_mw.usage")
GET(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_mw.enforced")
GET(nvmlDeviceGetPowerManagementLimit, unsigned, "power_mw.enforced")
GET(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "power_mw.default")
GET_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, unsigned, "power_mw.min", "power_mw.max")

API nvmlDeviceValidateInforom(Device *device)
{
    const char *text;

    ENTER("nvmlDeviceValidateInforom", device);
    text = of(device, "inforom");
    return text ? atoi(text) : NOT_SUPPORTED;
}

static const char *const ecc_types[] = {"corrected", "uncorrected"};
static const char *const ecc_counters[] = {"volatile", "aggregate"};

API nvmlDeviceGetTotalEccErrors(Device *device, unsigned type, unsigned counter, u64 *out)
{
    const char *text;

    ENTER("nvmlDeviceGetTotalEccErrors", device);
    if (type > 1 || counter > 1)
        return INVALID_ARGUMENT;
    if (!(text = of(device, "ecc_errors.%s.%s", ecc_counters[counter], ecc_types[type])))
        return NOT_SUPPORTED;
    *out = to_u64(text);
    return OK;
}

API nvmlDeviceGetMemoryErrorCounter(Device *device, unsigned type, unsigned counter,
                                    unsigned location, u64 *out)
{
    const char *place = location == 7 ? "sram" : location == 2 ? "dram" : NULL;
    const char *text;

    ENTER("nvmlDeviceGetMemoryErrorCounter", device);
    if (type > 1 || counter > 1)
        return INVALID_ARGUMENT;
    text = place ? of(device, "ecc_errors.%s.%s_%s", ecc_counters[counter], place, ecc_types[type])
                 : NULL;
    if (!text)
        return NOT_SUPPORTED;
    *out = to_u64(text);
    return OK;
}

typedef struct {
    unsigned version;
    u64 counters[11];
    unsigned threshold_exceeded;
} SramStatus;

API nvmlDeviceGetSramEccErrorStatus(Device *device, SramStatus *out)
{
    const char *text;

    ENTER("nvmlDeviceGetSramEccErrorStatus", device);
    if (out->version != (1u << 24 | sizeof *out))
        return VERSION_MISMATCH;
    if (!(text = of(device, "sram_threshold_exceeded")))
        return NOT_SUPPORTED;
    memset(out->counters, 0, sizeof out->counters);
    out->counters[2] = number_or(of(device, "ecc_errors.aggregate.sram_corrected"), 0);
    out->counters[5] = number_or(of(device, "ecc_errors.volatile.sram_corrected"), 0);
    out->threshold_exceeded = (unsigned)to_u64(text);
    return OK;
}

API nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failure)
{
    const char *text;

    ENTER("nvmlDeviceGetRemappedRows", device);
    if (!(text = of(device, "remapped_rows.corrected")))
        return NOT_SUPPORTED;
    *corrected = (unsigned)to_u64(text);
    *uncorrected = (unsigned)number_or(of(device, "remapped_rows.uncorrected"), 0);
    *pending = (unsigned)number_or(of(device, "remapped_rows.pending"), 0);
    *failure = (unsigned)number_or(of(device, "remapped_rows.failure"), 0);
    return OK;
}

API nvmlDeviceGetRetiredPages(Device *device, unsigned cause, unsigned *count, u64 *out)
{
    const char *text;
    unsigned room = *count, total;

    ENTER("nvmlDeviceGetRetiredPages", device);
    if (cause > 1)
        return INVALID_ARGUMENT;
    if (!(text = of(device, "retired_pages.%s", cause ? "double_bit" : "single_bit")))
        return NOT_SUPPORTED;
    total = (unsigned)to_u64(text);
    *count = total;
    if (total > room)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < total; i++)
        out[i] = 0x10000ull * (i + 1);
    return OK;
}

typedef struct {
    unsigned version, channel, tpc;
} Repair;

API nvmlDeviceGetRepairStatus(Device *device, Repair *out)
{
    const char *text;

    ENTER("nvmlDeviceGetRepairStatus", device);
    if (out->version != (1u << 24 | sizeof *out))
        return VERSION_MISMATCH;
    if (!(text = of(device, "repair.channel_pending")))
        return NOT_SUPPORTED;
    out->channel = (unsigned)to_u64(text);
    out->tpc = (unsigned)number_or(of(device, "repair.tpc_pending"), 0);
    return OK;
}

API nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *out)
{
    const char *text;

    ENTER("nvmlDeviceGetTemperature", device);
    if (sensor != 0)
        return INVALID_ARGUMENT;
    if (!(text = of(device, "temperature_c")))
        return NOT_SUPPORTED;
    *out = (unsigned)to_u64(text);
    return OK;
}

typedef struct {
    unsigned version, sensor;
    int celsius;
} Temperature;

API nvmlDeviceGetTemperatureV(Device *device, Temperature *out)
{
    const char *text;

    ENTER("nvmlDeviceGetTemperatureV", device);
    if (out->version != (1u << 24 | sizeof *out))
        return VERSION_MISMATCH;
    if (out->sensor != 0)
        return INVALID_ARGUMENT;
    if (!(text = of(device, "temperature_c")))
        return NOT_SUPPORTED;
    out->celsius = (int)to_u64(text);
    return OK;
}

API nvmlDeviceGetTemperatureThreshold(Device *device, unsigned kind, unsigned *out)
{
    static const char *const names[] = {"shutdown", "slowdown", "memory_max", "gpu_max"};
    const char *text;

    ENTER("nvmlDeviceGetTemperatureThreshold", device);
    if (kind > 3 || !(text = of(device, "temperature_threshold_c.%s", names[kind])))
        return NOT_SUPPORTED;
    *out = (unsigned)to_u64(text);
    return OK;
}

/* ---- PCIe and host affinity ------------------------------------------------------------------ */

GET(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie.generation")
GET(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie.max_generation")
GET(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, "pcie.gpu_max_generation")
GET(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie.width")
GET(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie.max_width")
GET(nvmlDeviceGetPcieReplayCounter, unsigned, "pcie.replay_counter")
GET(nvmlDeviceGetNumaNodeId, int, "gpu_numa_node")

/* "0-3,8" -> bits 0, 1, 2, 3, 8 */
static int put_bits(const char *text, unsigned words, unsigned long *out)
{
    if (!text)
        return NOT_SUPPORTED;
    memset(out, 0, words * sizeof *out);
    while (*text) {
        char *after;
        unsigned long first = strtoul(text, &after, 10), last = first;
        if (after == text)
            return UNKNOWN;
        if (*after == '-')
            last = strtoul(after + 1, &after, 10);
        if (last >= words * 64ul)
            return INSUFFICIENT_SIZE;
        for (; first <= last; first++)
            out[first / 64] |= 1ul << first % 64;
        text = *after == ',' ? after + 1 : after;
    }
    return OK;
}

API nvmlDeviceGetCpuAffinity(Device *device, unsigned words, unsigned long *out)
{
    ENTER("nvmlDeviceGetCpuAffinity", device);
    return put_bits(of(device, "cpu_affinity"), words, out);
}

API nvmlDeviceGetMemoryAffinity(Device *device, unsigned words, unsigned long *out, unsigned scope)
{
    ENTER("nvmlDeviceGetMemoryAffinity", device);
    if (scope > 1)
        return INVALID_ARGUMENT;
    return put_bits(of(device, "memory_affinity"), words, out);
}

/* ---- fields --------------------------------------------------------------------------------- */

typedef struct {
    unsigned id, scope;
    int64_t timestamp, latency;
    unsigned type;
    int status;
    union {
        double real;
        unsigned small;
        u64 large;
        long long negative;
    } value;
} Field;

API nvmlDeviceGetFieldValues(Device *device, int count, Field *fields)
{
    ENTER("nvmlDeviceGetFieldValues", device);
    for (int i = 0; i < count; i++) {
        Field *field = &fields[i];
        const char *text = of(device, "fields.%u.%u", field->id, field->scope);

        if (!text && field->scope == 0)
            text = of(device, "fields.%u", field->id);
        field->status = !text ? NOT_SUPPORTED : *text == '!' ? atoi(text + 1) : OK;
        field->value.large = 0;
        if (field->status != OK)
            continue;
        if (strchr(text, '.')) {
            field->type = 0;
            field->value.real = atof(text);
        } else if (*text == '-') {
            field->type = 4;
            field->value.negative = atoll(text);
        } else {
            field->value.large = to_u64(text);
            field->type = field->value.large > ~0u ? 3 : 1;
        }
    }
    return OK;
}

/* ---- NVLink and topology --------------------------------------------------------------------- */

static int link_value(const char *function, Device *device, unsigned link, const char *key,
                      const char **out)
{
    const char *count;

    ENTER(function, device);
    if (!(count = of(device, "links.#")))
        return NOT_SUPPORTED;
    if (link >= to_u64(count))
        return INVALID_ARGUMENT;
    *out = of(device, "links.%u.%s", link, key);
    return *out ? OK : NOT_SUPPORTED;
}

#define GET_LINK(function, key)                                            \
    API function(Device *device, unsigned link, unsigned *out)             \
    {                                                                      \
        const char *text;                                                  \
        int failed = link_value(#function, device, link, key, &text);      \
        if (!failed)                                                       \
            *out = (unsigned)to_u64(text);                                 \
        return failed;                                                     \
    }

GET_LINK(nvmlDeviceGetNvLinkState, "state")
GET_LINK(nvmlDeviceGetNvLinkVersion, "version")
GET_LINK(nvmlDeviceGetNvLinkRemoteDeviceType, "remote_type")

API nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, PciInfo *out)
{
    const char *text;
    int failed =
        link_value("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, "remote_bdf", &text);

    return failed ? failed : put_pci(text, NULL, NULL, out);
}

API nvmlDeviceGetNvLinkErrorCounter(Device *device, unsigned link, unsigned counter, u64 *out)
{
    static const char *const keys[] = {"errors.replay", "errors.recovery", "errors.crc_flit",
                                       "errors.crc_data"};
    const char *text;
    int failed;

    if (counter > 3)
        return INVALID_ARGUMENT;
    failed = link_value("nvmlDeviceGetNvLinkErrorCounter", device, link, keys[counter], &text);
    if (!failed)
        *out = to_u64(text);
    return failed;
}

static const char *pair_value(const char *table, const Device *first, const Device *second)
{
    const char *text = look("%s.%d.%d", table, first->gpu, second->gpu);

    return text ? text : look("%s", table); /* one value for every pair */
}

API nvmlDeviceGetTopologyCommonAncestor(Device *first, Device *second, unsigned *out)
{
    const char *text;
    int failed = enter_both("nvmlDeviceGetTopologyCommonAncestor", first, second);

    if (failed)
        return failed;
    if (!(text = pair_value("topology", first, second)))
        return NOT_SUPPORTED;
    *out = (unsigned)to_u64(text);
    return OK;
}

API nvmlDeviceGetP2PStatus(Device *first, Device *second, unsigned capability, unsigned *out)
{
    static const char *const tables[] = {"p2p.read", "p2p.write", "p2p.nvlink", "p2p.atomics",
                                         "p2p.pci"};
    const char *text;
    int failed = enter_both("nvmlDeviceGetP2PStatus", first, second);

    if (failed)
        return failed;
    if (capability > 4)
        return INVALID_ARGUMENT;
    if (!(text = pair_value(tables[capability], first, second)))
        return NOT_SUPPORTED;
    *out = (unsigned)to_u64(text);
    return OK;
}

/* ---- fabric --------------------------------------------------------------------------------- */

typedef struct {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
} Fabric;

typedef struct {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health_mask;
    unsigned char health_summary; /* from version 3 on */
} FabricV;

static void put_cluster(const Device *device, unsigned char out[16])
{
    const char *digits = of(device, "fabric.cluster");

    for (int i = 0; digits && i < 16 && sscanf(digits + 2 * i, "%2hhx", out + i) == 1; i++)
        ;
}

API nvmlDeviceGetGpuFabricInfo(Device *device, Fabric *out)
{
    const char *state;

    ENTER("nvmlDeviceGetGpuFabricInfo", device);
    if (!(state = of(device, "fabric.state")))
        return NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->state = (unsigned char)to_u64(state);
    out->status = (int)number_or(of(device, "fabric.status"), 0);
    out->clique = (unsigned)number_or(of(device, "fabric.clique"), 0);
    put_cluster(device, out->cluster);
    return OK;
}

API nvmlDeviceGetGpuFabricInfoV(Device *device, FabricV *out)
{
    const char *state;
    unsigned version = out->version, newest;

    ENTER("nvmlDeviceGetGpuFabricInfoV", device);
    newest = (unsigned)number_or(of(device, "fabric.newest_version"), 3);
    if (version >> 24 > newest || (version != 0x02000024 && version != 0x03000028))
        return VERSION_MISMATCH;
    if (!(state = of(device, "fabric.state")))
        return NOT_SUPPORTED;
    memset(out, 0, version & 0xffffff);
    out->version = version;
    out->state = (unsigned char)to_u64(state);
    out->status = (int)number_or(of(device, "fabric.status"), 0);
    out->clique = (unsigned)number_or(of(device, "fabric.clique"), 0);
    put_cluster(device, out->cluster);
    out->health_mask = (unsigned)number_or(of(device, "fabric.health_mask"), 0);
    if (version >> 24 >= 3)
        out->health_summary = (unsigned char)number_or(of(device, "fabric.health_summary"), 0);
    return OK;
}

/* ---- events --------------------------------------------------------------------------------- */

enum { TIMEOUT = 10, XID_CRITICAL = 8 };

typedef struct {
    Device *device;
    u64 type, data;
    unsigned gpu_instance, compute_instance;
} EventData;

static int event_set;
static int delivered;
static int registered[MAX_GPUS];

API nvmlEventSetCreate(int **out)
{
    ENTER_SYSTEM("nvmlEventSetCreate");
    *out = &event_set;
    return OK;
}

API nvmlDeviceRegisterEvents(Device *device, u64 types, int *set)
{
    ENTER("nvmlDeviceRegisterEvents", device);
    if (set != &event_set || types != XID_CRITICAL)
        return NOT_SUPPORTED;
    registered[device->gpu] = 1;
    return OK;
}

/* `xid_events`: a list of {"gpu", "code"}, of which each is delivered once, to who registered. */
API nvmlEventSetWait_v2(int *set, EventData *out, unsigned milliseconds)
{
    const char *gpu;

    ENTER_SYSTEM("nvmlEventSetWait_v2");
    if (set != &event_set)
        return INVALID_ARGUMENT;
    while ((gpu = look("xid_events.%d.gpu", delivered)) && !registered[atoi(gpu)])
        delivered++;
    if (!gpu) {
        pause_for(milliseconds / 1000.0);
        return TIMEOUT;
    }
    memset(out, 0, sizeof *out);
    out->device = &devices[atoi(gpu)][0];
    out->type = XID_CRITICAL;
    out->data = to_u64(look("xid_events.%d.code", delivered++));
    return OK;
}
