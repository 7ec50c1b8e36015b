// The file layer of `FaultyFiles`: preloaded into a process, it numbers the calls that change files below a directory and
// makes one of them fail, tear, or kill the process. `faulty_files.rs` documents the variables that it reads.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC = 2, TRUNCATE = 4, RENAME = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char files[PATH_MAX], synced[PATH_MAX];
static size_t files_length;
static int trace = -1;
static long calls, at;
// What happens at that call: an errno (0 for none), whether half of a write is done first, whether the process is killed,
// by how many seconds the clock jumps, whether later calls fail, too, and to which kinds of calls it happens.
static int error, is_torn, is_fatal, lasts, kinds;
static long jump;
static int has_happened;
static long clock_offset;

static long number(const char *name) {
  const char *value = getenv(name);
  return value ? strtol(value, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void) {
  const char *below = getenv("FAULTY_FILES_BELOW");
  if (!below) return;
  snprintf(files, sizeof files, "%s", below);
  const char *copies = getenv("FAULTY_FILES_SYNCED");
  if (copies) snprintf(synced, sizeof synced, "%s", copies);
  const char *calls_file = getenv("FAULTY_FILES_TRACE");
  if (calls_file) trace = open(calls_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  at = number("FAULTY_FILES_AT");
  error = number("FAULTY_FILES_ERRNO");
  is_torn = number("FAULTY_FILES_TORN");
  is_fatal = number("FAULTY_FILES_KILL");
  lasts = number("FAULTY_FILES_LASTS");
  kinds = number("FAULTY_FILES_KINDS");
  jump = number("FAULTY_FILES_JUMP");
  files_length = strlen(files);
  // Programs that this one starts have faults of their own.
  unsetenv("LD_PRELOAD");
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int is_below(const char *path) { return files_length && strncmp(path, files, files_length) == 0; }

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_below(path);
}

enum verdict { GO_ON, FAIL, TEAR };

// Counts a call and says what becomes of it.
static enum verdict judge(enum kind kind, const char *name, const char *path, size_t bytes) {
  pthread_mutex_lock(&lock);
  calls++;
  int happens = at && calls >= at && (kinds & kind) && (!has_happened || lasts);
  int is_first = happens && !has_happened;
  if (happens) has_happened = 1;
  if (is_first && jump) clock_offset = jump;
  if (trace >= 0) {
    char line[PATH_MAX + 96];
    int length = snprintf(line, sizeof line, "%s%s %s %zu\n", happens ? "! " : "", name, path + files_length, bytes);
    if (syscall(SYS_write, trace, line, length) < 0) _exit(97);
  }
  pthread_mutex_unlock(&lock);
  if (!happens) return GO_ON;
  if (kind == WRITE && is_torn && is_first && bytes > 1) return TEAR;
  if (is_fatal) kill(getpid(), SIGKILL);
  return error ? FAIL : GO_ON;
}

static int failed(void) {
  errno = error;
  return -1;
}

// After the half of a write.
static ssize_t torn(void) {
  if (is_fatal) kill(getpid(), SIGKILL);
  return failed();
}

ssize_t pwrite64(int fd, const void *from, size_t count, off64_t offset) {
  REAL(pwrite64);
  char path[PATH_MAX];
  if (!path_of(fd, path)) return real(fd, from, count, offset);
  switch (judge(WRITE, "pwrite", path, count)) {
    case FAIL: return failed();
    case TEAR: return real(fd, from, count / 2, offset) < 0 ? -1 : torn();
    default: return real(fd, from, count, offset);
  }
}

ssize_t pwrite(int fd, const void *from, size_t count, off_t offset) { return pwrite64(fd, from, count, offset); }

ssize_t write(int fd, const void *from, size_t count) {
  REAL(write);
  char path[PATH_MAX];
  if (!files_length || !path_of(fd, path)) return real(fd, from, count);
  switch (judge(WRITE, "write", path, count)) {
    case FAIL: return failed();
    case TEAR: return real(fd, from, count / 2) < 0 ? -1 : torn();
    default: return real(fd, from, count);
  }
}

// Copies what a file has now to where what is on the disk is kept: `<synced>/<inode>`.
static void keep(int fd) {
  if (!*synced) return;
  struct stat about;
  char name[PATH_MAX + 64], draft[PATH_MAX + 80];
  if (fstat(fd, &about) || !S_ISREG(about.st_mode)) return;
  snprintf(name, sizeof name, "%s/%ju", synced, (uintmax_t)about.st_ino);
  snprintf(draft, sizeof draft, "%s.%d", name, (int)syscall(SYS_gettid));
  int copy = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char part[65536];
  ssize_t length;
  for (off64_t offset = 0; (length = pread64(fd, part, sizeof part, offset)) > 0; offset += length)
    if (syscall(SYS_write, copy, part, length) != length) _exit(98);
  close(copy);
  rename(draft, name);
}

static int sync_by(int (*real)(int), const char *name, int fd) {
  char path[PATH_MAX];
  if (!path_of(fd, path)) return real(fd);
  if (judge(SYNC, name, path, 0) == FAIL) return failed();
  int done = real(fd);
  if (done == 0) keep(fd);
  return done;
}

int fsync(int fd) {
  REAL(fsync);
  return sync_by(real, "fsync", fd);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return sync_by(real, "fdatasync", fd);
}

int ftruncate64(int fd, off64_t length) {
  REAL(ftruncate64);
  char path[PATH_MAX];
  if (path_of(fd, path) && judge(TRUNCATE, "ftruncate", path, length) == FAIL) return failed();
  return real(fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

// Not in all systems' headers as a function that can be replaced: both names go the same way.
#undef rename
int rename(const char *from, const char *to) {
  REAL(rename);
  if (is_below(to) && judge(RENAME, "rename", to, 0) == FAIL) return failed();
  return real(from, to);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  REAL(clock_gettime);
  int done = real(clock, time);
  if (done == 0 && clock == CLOCK_REALTIME) time->tv_sec += __atomic_load_n(&clock_offset, __ATOMIC_RELAXED);
  return done;
}
