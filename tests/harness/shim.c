/* Stands between a broker and its system, and makes clocks jump, disks slow and disks full, as a file of three numbers says that others
 * write to meanwhile. Loaded by LD_PRELOAD. What the broker asks of the kernel past the C library (how much space there is, space for a
 * whole file) goes on as it is; a full disk is one on which no file gets a name or becomes longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct troubles {
    volatile int64_t clock_ms; /* by how much the wall clock is ahead */
    volatile int64_t sync_ms;  /* how much longer a sync takes */
    volatile int64_t full;
};

static struct troubles none;
static struct troubles *troubles = &none;

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void find(void) {
    const char *path = getenv("LEVERET_SHIM");
    if (!path) return;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) troubles = at;
    close(fd);
}

int clock_gettime(clockid_t which, struct timespec *time) {
    REAL(clock_gettime);
    int result = real(which, time);
    if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
        int64_t ahead_ms = troubles->clock_ms;
        int64_t ns = time->tv_nsec + ahead_ms % 1000 * 1000000;
        time->tv_sec += ahead_ms / 1000 + (ns >= 1000000000) - (ns < 0);
        time->tv_nsec = ns + (ns < 0 ? 1000000000 : ns >= 1000000000 ? -1000000000 : 0);
    }
    return result;
}

/* Begun while the disk was slow, a sync is done no later than ten milliseconds after that is over. */
static void be_slow(void) {
    struct timespec step = {0, 10000000};
    for (int64_t waited_ms = 0; waited_ms < troubles->sync_ms; waited_ms += 10) nanosleep(&step, NULL);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    be_slow();
    return real(fd);
}

int fsync(int fd) {
    REAL(fsync);
    be_slow();
    return real(fd);
}

static int full(void) {
    errno = ENOSPC;
    return -1;
}

static int is_new(int dir, const char *path) {
    struct stat found;
    return fstatat(dir, path, &found, AT_SYMLINK_NOFOLLOW) != 0;
}

static int opened(int dir, const char *path, int flags, mode_t mode) {
    if (troubles->full && (flags & O_CREAT) && is_new(dir, path)) return full();
    return syscall(SYS_openat, dir, path, flags, mode);
}

#define OPENED(dir, path, flags) \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    return opened(dir, path, flags, mode)

int open(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int openat64(int dir, const char *path, int flags, ...) { OPENED(dir, path, flags); }

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return troubles->full && is_new(AT_FDCWD, path) ? full() : real(path, mode);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return troubles->full && is_new(AT_FDCWD, to) ? full() : real(from, to);
}

/* How many of so many bytes find room: all of them, those up to the end of the file, or none. */
static ssize_t room(int fd, size_t count, off_t offset) {
    struct stat file;
    if (!troubles->full || fd <= STDERR_FILENO || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return count;
    if (offset < 0) offset = lseek(fd, 0, SEEK_CUR);
    if (offset + (off_t)count <= file.st_size) return count;
    return offset < file.st_size ? file.st_size - offset : full();
}

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(write);
    ssize_t fits = room(fd, count, -1);
    return fits < 0 ? fits : real(fd, bytes, fits);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    REAL(pwrite64);
    ssize_t fits = room(fd, count, offset);
    return fits < 0 ? fits : real(fd, bytes, fits, offset);
}
