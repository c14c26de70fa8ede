/* A clock that is LATER_SECONDS ahead, for the programs that this is loaded into (tools/later).

   Only the time of day is moved. What measures spans, such as sleeps and timeouts, goes by the
   monotonic clock and is left alone: libfaketime 0.9.10 breaks clock_nanosleep there, by which
   Python sleeps. Children that are given an environment of their own have the same clock: a machine
   has one. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long later;

__attribute__((constructor)) static void read_later(void) {
  const char *text = getenv("LATER_SECONDS");
  later = text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  long failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += later;
  return (int)failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}

/* The environment with what makes a child load this, on the stack of the caller: after vfork nothing
   may be allocated. */
static const char *const NAMES[] = {"LD_PRELOAD=", "LATER_SECONDS="};
enum { COUNT = sizeof NAMES / sizeof *NAMES };
static char own[COUNT][4096];

__attribute__((constructor)) static void keep_own(void) {
  for (int at = 0; at < COUNT; at++) {
    char name[32];
    size_t length = strlen(NAMES[at]);
    memcpy(name, NAMES[at], length);
    name[length - 1] = 0;
    const char *text = getenv(name);
    strcpy(own[at], NAMES[at]);
    if (text) strncat(own[at], text, sizeof own[at] - length - 1);
  }
}

static size_t count_of(char *const *environment) {
  size_t count = 0;
  while (environment && environment[count]) count++;
  return count;
}

/* In a sandbox that hides this library, a child could not load it, and would complain. */
static int is_hidden(void) {
  char path[sizeof own[0]];
  strcpy(path, own[0] + strlen(NAMES[0]));
  path[strcspn(path, ":")] = 0;
  return access(path, R_OK) != 0;
}

static void add_own(char **into, char *const *environment) {
  size_t count = count_of(environment);
  for (size_t at = 0; at < count; at++) *into++ = environment[at];
  for (int at = 0; at < COUNT && !is_hidden(); at++) {
    int has = 0;
    for (size_t each = 0; each < count; each++)
      has |= !strncmp(environment[each], NAMES[at], strlen(NAMES[at]));
    if (!has) *into++ = own[at];
  }
  *into = NULL;
}

/* Each takes the environment as its last argument. */
#define WITH_OWN(type, name, environment, ...)                                     \
  char **with = alloca((count_of(environment) + COUNT + 1) * sizeof *with);        \
  add_own(with, environment);                                                      \
  return ((type)dlsym(RTLD_NEXT, name))(__VA_ARGS__, with)

typedef int (*Execute)(const char *, char *const *, char *const *);
typedef int (*Spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                     const posix_spawnattr_t *, char *const *, char *const *);

int execve(const char *file, char *const words[], char *const environment[]) {
  WITH_OWN(Execute, "execve", environment, file, words);
}

int execvpe(const char *file, char *const words[], char *const environment[]) {
  WITH_OWN(Execute, "execvpe", environment, file, words);
}

int execvp(const char *file, char *const words[]) {
  WITH_OWN(Execute, "execvpe", environ, file, words);
}

int posix_spawn(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const words[], char *const environment[]) {
  WITH_OWN(Spawn, "posix_spawn", environment, child, file, actions, attributes, words);
}

int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[], char *const environment[]) {
  WITH_OWN(Spawn, "posix_spawnp", environment, child, file, actions, attributes, words);
}
