/* Stands between a broker and its system, and makes clocks jump, disks slow and disks full, as a file of four numbers says that others
 * write to meanwhile. On demand it notes what a power cut would take: what stood where something is written, and which files were synced. Loaded by LD_PRELOAD. What the broker asks of the kernel past the C library (how much space there is, space for a
 * whole file) goes on as it is; a full disk is one on which no file gets a name or becomes longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct troubles {
    volatile int64_t clock_ms; /* by how much the wall clock is ahead */
    volatile int64_t sync_ms;  /* how much longer a sync takes */
    volatile int64_t full;
    volatile int64_t notes; /* what is not synced is noted */
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

/* What is written to a file of notes: with `old` bytes behind it that stood there before; or a sync, of which all is safe that was noted
 * before this place. */
struct note {
    int64_t is_sync;
    uint64_t inode;
    int64_t offset; /* in the file, or the place in the notes */
    int64_t length;
    int64_t old;
};

static int notes(void) {
    static int fd = -1;
    const char *path = getenv("LEVERET_SHIM");
    char name[4096];
    if (!troubles->notes || !path) return -1;
    if (fd < 0 && snprintf(name, sizeof name, "%s.notes", path) < (int)sizeof name) {
        int opened = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        int none_yet = -1;
        if (!__atomic_compare_exchange_n(&fd, &none_yet, opened, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) close(opened);
    }
    return fd;
}

static void note(struct note note, void *old) {
    struct iovec both[2] = {{&note, sizeof note}, {old, note.old}};
    syscall(SYS_writev, notes(), both, 2);
}

static void note_write(int fd, size_t count, off_t offset) {
    struct stat file;
    if (notes() < 0 || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return;
    char *old = malloc(count);
    if (!old) return;
    ssize_t read = syscall(SYS_pread64, fd, old, count, offset);
    note((struct note){0, file.st_ino, offset, count, read < 0 ? 0 : read}, old);
    free(old);
}

/* A file that is gone: another one may get its number. */
static void note_gone(int dir, const char *path) {
    struct stat file;
    if (notes() >= 0 && fstatat(dir, path, &file, AT_SYMLINK_NOFOLLOW) == 0) note((struct note){1, file.st_ino, lseek(notes(), 0, SEEK_END), 0, 0}, NULL);
}

int unlink(const char *path) {
    REAL(unlink);
    note_gone(AT_FDCWD, path);
    return real(path);
}

int unlinkat(int dir, const char *path, int flags) {
    REAL(unlinkat);
    note_gone(dir, path);
    return real(dir, path, flags);
}

static int synced(int (*real)(int), int fd) {
    be_slow();
    struct stat file;
    int64_t begun = notes() < 0 ? -1 : lseek(notes(), 0, SEEK_END);
    int result = real(fd);
    if (result == 0 && begun >= 0 && fstat(fd, &file) == 0) note((struct note){1, file.st_ino, begun, 0, 0}, NULL);
    return result;
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return synced(real, fd);
}

int fsync(int fd) {
    REAL(fsync);
    return synced(real, fd);
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
    if (fits > 0) note_write(fd, fits, offset);
    return fits < 0 ? fits : real(fd, bytes, fits, offset);
}
