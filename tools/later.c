/* A clock that is LATER_SECONDS ahead, for the programs that this is loaded into (tools/later).

   Only the time of day is moved. What measures spans, such as sleeps and timeouts, goes by the
   monotonic clock and is left alone: libfaketime 0.9.10 breaks clock_nanosleep there, by which
   Python sleeps. */
#define _GNU_SOURCE
#include <stdlib.h>
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
