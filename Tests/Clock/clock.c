/* Shows a process another time of day.

   Loaded before the C library, this function stands in front of its own and adds the seconds that the file CLOCK_SHIFT
   holds at that moment. The monotonic clock, by which everything waits, is left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long shift(void) {
  const char *path = getenv("CLOCK_SHIFT");
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) return 0;
  long seconds = 0;
  if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
  fclose(file);
  return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int result = next(clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += shift();
  return result;
}
