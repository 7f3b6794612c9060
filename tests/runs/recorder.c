/* Loaded before the C library (LD_PRELOAD): writes down what a process does to the files of one directory, in order.
 *
 * RECORD_DIRECTORY: whose files. RECORD_LOG: where to write; one record per operation, little-endian:
 *   u8 kind ('w' write, 't' truncate, 's' sync, 'u' unlink, 'o' open for the first time), u16 length of the name,
 *   the name, u64 offset, u64 length, and for a write that many bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define FILES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *names[FILES];

static void *next_symbol(const char *name) { return dlsym(RTLD_NEXT, name); }

static const char *inside(const char *path) {
    const char *directory = getenv("RECORD_DIRECTORY");
    if (!directory || !path) return NULL;
    size_t length = strlen(directory);
    if (strncmp(path, directory, length) || path[length] != '/') return NULL;
    return path + length + 1;
}

static void record(char kind, const char *name, uint64_t offset, uint64_t length, const void *data) {
    static int log = -1;
    static ssize_t (*real_write)(int, const void *, size_t);
    pthread_mutex_lock(&lock);
    if (!real_write) real_write = (ssize_t (*)(int, const void *, size_t))next_symbol("write");
    if (log < 0) {
        int (*real_open)(const char *, int, ...) = (int (*)(const char *, int, ...))next_symbol("open");
        log = real_open(getenv("RECORD_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    uint16_t name_length = (uint16_t)strlen(name);
    size_t total = 1 + 2 + name_length + 16 + (data ? length : 0);
    char *buffer = malloc(total), *at = buffer;
    *at++ = kind;
    memcpy(at, &name_length, 2), at += 2;
    memcpy(at, name, name_length), at += name_length;
    memcpy(at, &offset, 8), at += 8;
    memcpy(at, &length, 8), at += 8;
    if (data) memcpy(at, data, length);
    if (real_write(log, buffer, total) != (ssize_t)total) abort();
    free(buffer);
    pthread_mutex_unlock(&lock);
}

static int opened(int fd, const char *path) {
    const char *name = inside(path);
    if (fd >= 0 && fd < FILES) {
        free(names[fd]);
        names[fd] = name ? strdup(name) : NULL;
        if (name) record('o', name, 0, 0, NULL);
    }
    return fd;
}

static const char *known(int fd) { return fd >= 0 && fd < FILES ? names[fd] : NULL; }

#define OPEN(NAME)                                                               \
    int NAME(const char *path, int flags, ...) {                                 \
        va_list more;                                                            \
        va_start(more, flags);                                                   \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;  \
        va_end(more);                                                            \
        int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))next_symbol(#NAME); \
        return opened(real(path, flags, mode), path);                            \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    int (*real)(int) = (int (*)(int))next_symbol("close");
    if (known(fd)) free(names[fd]), names[fd] = NULL;
    return real(fd);
}

#define PWRITE(NAME, OFFSET)                                                                      \
    ssize_t NAME(int fd, const void *data, size_t length, OFFSET offset) {                        \
        ssize_t (*real)(int, const void *, size_t, OFFSET) =                                      \
            (ssize_t (*)(int, const void *, size_t, OFFSET))next_symbol(#NAME);                   \
        ssize_t done = real(fd, data, length, offset);                                            \
        if (known(fd) && done > 0) record('w', known(fd), (uint64_t)offset, (uint64_t)done, data); \
        return done;                                                                              \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int fd, const void *data, size_t length) {
    ssize_t (*real)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))next_symbol("write");
    off_t offset = known(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = real(fd, data, length);
    if (known(fd) && done > 0) record('w', known(fd), (uint64_t)offset, (uint64_t)done, data);
    return done;
}

#define TRUNCATE(NAME, OFFSET)                                                    \
    int NAME(int fd, OFFSET length) {                                             \
        int (*real)(int, OFFSET) = (int (*)(int, OFFSET))next_symbol(#NAME);      \
        int done = real(fd, length);                                              \
        if (known(fd) && !done) record('t', known(fd), (uint64_t)length, 0, NULL); \
        return done;                                                              \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(NAME)                                              \
    int NAME(int fd) {                                          \
        int (*real)(int) = (int (*)(int))next_symbol(#NAME);    \
        int done = real(fd);                                    \
        if (known(fd) && !done) record('s', known(fd), 0, 0, NULL); \
        return done;                                            \
    }
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
    int (*real)(const char *) = (int (*)(const char *))next_symbol("unlink");
    int done = real(path);
    if (inside(path) && !done) record('u', inside(path), 0, 0, NULL);
    return done;
}
