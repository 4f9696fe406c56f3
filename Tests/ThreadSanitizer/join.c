/* Tells the thread sanitizer of joins that have a limit by the monotonic clock.

   It does not know pthread_clockjoin_np(3): a thread joined so stays alive in its books, and it stops when the next one
   gets the same identifier. It knows pthread_timedjoin_np(3), which waits by the time of day. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#define SECOND 1000000000LL

int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *until) {
  struct timespec now, today;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &today);
  long long left = (until->tv_sec - now.tv_sec) * SECOND + (until->tv_nsec - now.tv_nsec);
  if (left < 0) left = 0;
  long long end = today.tv_nsec + left;
  today.tv_sec += end / SECOND;
  today.tv_nsec = end % SECOND;
  return pthread_timedjoin_np(thread, result, &today);
}
