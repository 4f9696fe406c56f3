/* libsodium as it is, and the file calls by which keys are kept. _GNU_SOURCE comes first, as in every C module here.
 * The file calls come from here and not from Swift's Glibc module: that is built without _GNU_SOURCE, and one target
 * cannot see both forms of <sys/select.h>. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef PINFOLD_CSODIUM_H
#define PINFOLD_CSODIUM_H
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* open(2) is variadic; the importer sees plain functions only. */
static inline int pinfold_open(const char *_Nonnull path, int flags, mode_t mode) {
  return open(path, flags, mode);
}

/* errno is a macro. */
static inline int pinfold_errno(void) {
  return errno;
}

/* readdir(3) tells an error from the end by errno alone, and its name is an array, which the importer makes a tuple. The
 * name is good until the next call. */
static inline const char *_Nullable pinfold_next_name(DIR *_Nonnull directory) {
  errno = 0;
  struct dirent *entry = readdir(directory);
  return entry == NULL ? NULL : entry->d_name;
}

/* strerror_r(3) exists in two forms; with _GNU_SOURCE it returns the text, which may be constant or in the buffer. */
static inline const char *_Nonnull pinfold_error_text(int code, char *_Nonnull buffer, size_t size) {
  return strerror_r(code, buffer, size);
}
#endif
