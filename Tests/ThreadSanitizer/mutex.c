/* Tells the thread sanitizer of Swift's Mutex.

   When a Mutex is contended, Swift takes and gives it back in functions of libswiftSynchronization, which was built
   without the sanitizer: that one thread's unlocking came before the other's locking is not seen, and everything the
   Mutex guards is called a race. Loaded before that library, these functions stand in front of its own and say it. The
   uncontended paths are compiled into the program, where the sanitizer sees them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the sanitizer's run time; missing in programs without it, which inherit LD_PRELOAD from a test. */
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"

static void *next(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) {
    fprintf(stderr, "mutex.c: this Swift has no %s\n", name);
    abort();
  }
  return found;
}

SWIFT void lock(uint32_t thread, SELF) __asm__(LOCK);
SWIFT void lock(uint32_t thread, SELF) {
  ((SWIFT void (*)(uint32_t, SELF))next(LOCK))(thread, self);
  if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT void unlock(SELF) __asm__(UNLOCK);
SWIFT void unlock(SELF) {
  if (__tsan_release) __tsan_release(self);
  ((SWIFT void (*)(SELF))next(UNLOCK))(self);
}

SWIFT _Bool tryLock(SELF) __asm__(TRY_LOCK);
SWIFT _Bool tryLock(SELF) {
  _Bool taken = ((SWIFT _Bool (*)(SELF))next(TRY_LOCK))(self);
  if (taken && __tsan_acquire) __tsan_acquire(self);
  return taken;
}
