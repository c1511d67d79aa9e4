/* Clocks that a test can move, for one process: put before others by LD_PRELOAD.
 *
 * The file that JUMP_FILE names holds three numbers of nanoseconds (int64, native order), read anew at each call:
 *   [0] sleep  what the machine slept: CLOCK_REALTIME and CLOCK_BOOTTIME are ahead by it
 *   [1] step   what somebody set the clock by: CLOCK_REALTIME alone is ahead by it
 *   [2] later  what passed in an instant: all clocks are ahead by it
 * Every wait lasts as long as it really does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile int64_t nothing[3];
static volatile int64_t *jump = nothing;

__attribute__((constructor)) static void open_file(void) {
    const char *path = getenv("JUMP_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *shared = mmap(NULL, sizeof nothing, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED)
        jump = shared;
}

static int64_t ahead(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return jump[0] + jump[1] + jump[2];
    case CLOCK_BOOTTIME:
        return jump[0] + jump[2];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
        return jump[2];
    default:
        return 0;
    }
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int result = (int)syscall(SYS_clock_gettime, clock, at);
    if (result)
        return result;
    int64_t nanoseconds = at->tv_nsec + ahead(clock);
    at->tv_sec += nanoseconds / SECOND;
    at->tv_nsec = nanoseconds % SECOND;
    if (at->tv_nsec < 0) {
        at->tv_nsec += SECOND;
        at->tv_sec--;
    }
    return 0;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
