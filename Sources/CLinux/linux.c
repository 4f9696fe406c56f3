/* _GNU_SOURCE for accept4, pipe2, splice and strerrorname_np. */
#define _GNU_SOURCE
#include "CLinux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PINFOLD_RETRY(call)                                                                                            \
  ({                                                                                                                   \
    ssize_t result_;                                                                                                   \
    do {                                                                                                               \
      result_ = (ssize_t)(call);                                                                                       \
    } while (result_ < 0 && errno == EINTR);                                                                           \
    result_ < 0 ? -(ssize_t)errno : result_;                                                                           \
  })


static uint64_t pinfold_load64(const uint8_t *bytes) {
  uint64_t value;
  memcpy(&value, bytes, 8);
  return __builtin_bswap64(value);
}

static void pinfold_store64(uint8_t *bytes, uint64_t value) {
  value = __builtin_bswap64(value);
  memcpy(bytes, &value, 8);
}

/* sockaddr and its casts cannot be written safely in Swift. */
static pinfold_address pinfold_from_sockaddr(const struct sockaddr *raw, socklen_t length) {
  pinfold_address address;
  memset(&address, 0, sizeof address);
  if (length >= sizeof(struct sockaddr_in) && raw->sa_family == AF_INET) {
    struct sockaddr_in v4;
    memcpy(&v4, raw, sizeof v4);
    address.family = 4;
    address.v4 = ntohl(v4.sin_addr.s_addr);
    address.port = ntohs(v4.sin_port);
  } else if (length >= sizeof(struct sockaddr_in6) && raw->sa_family == AF_INET6) {
    struct sockaddr_in6 v6;
    memcpy(&v6, raw, sizeof v6);
    address.family = 6;
    address.high = pinfold_load64(v6.sin6_addr.s6_addr);
    address.low = pinfold_load64(v6.sin6_addr.s6_addr + 8);
    address.port = ntohs(v6.sin6_port);
  }
  return address;
}

static socklen_t pinfold_to_sockaddr(pinfold_address address, struct sockaddr_storage *raw) {
  memset(raw, 0, sizeof *raw);
  if (address.family == 4) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)raw;
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(address.v4);
    v4->sin_port = htons(address.port);
    return sizeof *v4;
  }
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)raw;
  v6->sin6_family = AF_INET6;
  pinfold_store64(v6->sin6_addr.s6_addr, address.high);
  pinfold_store64(v6->sin6_addr.s6_addr + 8, address.low);
  v6->sin6_port = htons(address.port);
  return sizeof *v6;
}

/* sun_path is a fixed array in C, a 108-tuple in Swift. Answers 0 for a path that does not fit. */
static socklen_t pinfold_to_sockaddr_un(const char *path, struct sockaddr_un *raw) {
  size_t length = strlen(path);
  memset(raw, 0, sizeof *raw);
  raw->sun_family = AF_UNIX;
  if (length == 0 || length >= sizeof raw->sun_path) return 0;
  memcpy(raw->sun_path, path, length);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
}

static ssize_t pinfold_set_int(int fd, int level, int name, int value) {
  return PINFOLD_RETRY(setsockopt(fd, level, name, &value, sizeof value));
}

intptr_t pinfold_socket(uint8_t family) {
  int domain = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNIX;
  ssize_t fd = PINFOLD_RETRY(socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd >= 0 && domain != AF_UNIX) pinfold_set_int((int)fd, IPPROTO_TCP, TCP_NODELAY, 1);
  return fd;
}

intptr_t pinfold_reuse(int fd, int sharesPort) {
  ssize_t result = pinfold_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (result == 0 && sharesPort) result = pinfold_set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  return result;
}

intptr_t pinfold_bind(int fd, pinfold_address address) {
  struct sockaddr_storage raw;
  socklen_t length = pinfold_to_sockaddr(address, &raw);
  if (address.family == 6) pinfold_set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  return PINFOLD_RETRY(bind(fd, (struct sockaddr *)&raw, length));
}

intptr_t pinfold_bind_unix(int fd, const char *path) {
  struct sockaddr_un raw;
  socklen_t length = pinfold_to_sockaddr_un(path, &raw);
  if (length == 0) return -ENAMETOOLONG;
  return PINFOLD_RETRY(bind(fd, (struct sockaddr *)&raw, length));
}

intptr_t pinfold_listen(int fd, int backlog) { return PINFOLD_RETRY(listen(fd, backlog)); }

intptr_t pinfold_connect(int fd, pinfold_address address) {
  struct sockaddr_storage raw;
  socklen_t length = pinfold_to_sockaddr(address, &raw);
  if (connect(fd, (struct sockaddr *)&raw, length) == 0) return 0;
  return errno == EINTR ? -EINPROGRESS : -errno;
}

intptr_t pinfold_connect_unix(int fd, const char *path) {
  struct sockaddr_un raw;
  socklen_t length = pinfold_to_sockaddr_un(path, &raw);
  if (length == 0) return -ENAMETOOLONG;
  return PINFOLD_RETRY(connect(fd, (struct sockaddr *)&raw, length));
}

intptr_t pinfold_accept(int fd, pinfold_address *peer) {
  struct sockaddr_storage raw;
  socklen_t length = sizeof raw;
  ssize_t result = PINFOLD_RETRY(accept4(fd, (struct sockaddr *)&raw, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (result >= 0) *peer = pinfold_from_sockaddr((struct sockaddr *)&raw, length);
  return result;
}

pinfold_address pinfold_local_address(int fd) {
  struct sockaddr_storage raw;
  socklen_t length = sizeof raw;
  memset(&raw, 0, sizeof raw);
  if (getsockname(fd, (struct sockaddr *)&raw, &length) != 0) length = 0;
  return pinfold_from_sockaddr((struct sockaddr *)&raw, length);
}

int pinfold_socket_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

intptr_t pinfold_recv(int fd, void *buffer, size_t count) {
  return PINFOLD_RETRY(recv(fd, buffer, count, 0));
}

intptr_t pinfold_peek(int fd) {
  char byte;
  return PINFOLD_RETRY(recv(fd, &byte, 1, MSG_PEEK));
}

intptr_t pinfold_send(int fd, const void *buffer, size_t count) {
  return PINFOLD_RETRY(send(fd, buffer, count, MSG_NOSIGNAL));
}

intptr_t pinfold_splice(int from, int to, size_t count) {
  return PINFOLD_RETRY(splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK));
}

intptr_t pinfold_pipe(int *reader, int *writer, int size) {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return -errno;
  *reader = ends[0];
  *writer = ends[1];
  int actual = fcntl(ends[1], F_SETPIPE_SZ, size);
  if (actual < 0) actual = fcntl(ends[1], F_GETPIPE_SZ);
  return actual < 0 ? 4096 : actual;
}

intptr_t pinfold_shutdown_write(int fd) { return PINFOLD_RETRY(shutdown(fd, SHUT_WR)); }

void pinfold_shutdown(int fd) { shutdown(fd, SHUT_RDWR); }

void pinfold_close(int fd) { close(fd); }

void pinfold_close_reset(int fd) {
  struct linger linger = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  close(fd);
}

intptr_t pinfold_eventfd(void) { return PINFOLD_RETRY(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

void pinfold_eventfd_signal(int fd) {
  uint64_t one = 1;
  (void)PINFOLD_RETRY(write(fd, &one, sizeof one));
}

intptr_t pinfold_timerfd(void) {
  return PINFOLD_RETRY(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

void pinfold_timerfd_set(int fd, uint64_t nanoseconds) {
  struct itimerspec when = {0};
  when.it_value.tv_sec = (time_t)(nanoseconds / 1000000000u);
  when.it_value.tv_nsec = (long)(nanoseconds % 1000000000u);
  (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

intptr_t pinfold_open_null(void) { return PINFOLD_RETRY(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

void pinfold_fill_standard_descriptors(void) {
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest number that is free is this one.
    (void)PINFOLD_RETRY(open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY));
  }
}

uint64_t pinfold_monotonic_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uintptr_t pinfold_thread(void) { return (uintptr_t)pthread_self(); }

intptr_t pinfold_is_socket(const char *path) {
  struct stat status;
  if (lstat(path, &status) != 0) return -errno;
  return S_ISSOCK(status.st_mode) ? 1 : 0;
}

pinfold_file pinfold_look_at_file(const char *path) {
  struct stat status;
  pinfold_file none = {0, 0};
  if (lstat(path, &status) != 0) return none;
  return (pinfold_file){status.st_dev, status.st_ino};
}

intptr_t pinfold_unlink(const char *path) { return PINFOLD_RETRY(unlink(path)); }

intptr_t pinfold_descriptor_limit(uint64_t wish, int changes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -errno;
  if (changes) {
    limit.rlim_cur = wish == 0 || wish > limit.rlim_max ? limit.rlim_max : (rlim_t)wish;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return -errno;
  }
  return limit.rlim_cur > INT32_MAX ? INT32_MAX : (ssize_t)limit.rlim_cur;
}

intptr_t pinfold_descriptor_count(void) {
  DIR *directory = opendir("/proc/self/fd");
  if (directory == NULL) return -errno;
  ssize_t count = 0;
  struct dirent *entry;
  while ((entry = readdir(directory)) != NULL) count += entry->d_name[0] != '.';
  closedir(directory);
  return count - 1;
}

void pinfold_ignore_write_signals(void) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

intptr_t pinfold_thread_start(
    const char *name, void *(*body)(void *), void *context,
    uintptr_t *thread) {
  pthread_t started;
  int error = pthread_create(&started, NULL, body, context);
  if (error != 0) return -error;
  pthread_setname_np(started, name);
  *thread = (uintptr_t)started;
  return 0;
}

void pinfold_thread_join(uintptr_t thread) { pthread_join((pthread_t)thread, NULL); }

int pinfold_thread_join_until(uintptr_t thread, uint64_t nanoseconds) {
  struct timespec when = {
      .tv_sec = (time_t)(nanoseconds / 1000000000u), .tv_nsec = (long)(nanoseconds % 1000000000u)};
  return pthread_clockjoin_np((pthread_t)thread, NULL, CLOCK_MONOTONIC, &when) == 0;
}

const char *pinfold_error_text(int error) {
  const char *text = strerrordesc_np(error);
  return text != NULL ? text : "unknown error";
}

intptr_t pinfold_open_fifo(const char *path, unsigned mode) {
  int made = mkfifo(path, (mode_t)mode) == 0;
  if (!made && errno != EEXIST) return -errno;
  int fd = (int)PINFOLD_RETRY(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (fd < 0) return fd;
  struct stat about;
  int error = 0;
  if (fstat(fd, &about) != 0) {
    error = errno;
  } else if (!S_ISFIFO(about.st_mode)) {
    error = EEXIST;
  } else if (made && fchmod(fd, (mode_t)mode) != 0) {
    error = errno;
  }
  if (error != 0) {
    close(fd);
    return -error;
  }
  /* Room for writers while the reader is busy; the default is kept where the system allows no more. */
  fcntl(fd, F_SETPIPE_SZ, 1 << 20);
  return fd;
}

intptr_t pinfold_look_at_fifo(const char *path, unsigned *mode, int *is_foreign) {
  struct stat about;
  if (lstat(path, &about) != 0) return -errno;
  if (!S_ISFIFO(about.st_mode)) return -EEXIST;
  *mode = about.st_mode & 07777;
  *is_foreign = about.st_uid != geteuid() && about.st_uid != 0;
  return 0;
}

intptr_t pinfold_read(int fd, void *buffer, size_t count) { return PINFOLD_RETRY(read(fd, buffer, count)); }

static void pinfold_mask_signal(int number, int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(how, &set, NULL);
}

void pinfold_block_signal(int number) { pinfold_mask_signal(number, SIG_BLOCK); }

void pinfold_unblock_signal(int number) { pinfold_mask_signal(number, SIG_UNBLOCK); }

const int pinfold_sighup = SIGHUP, pinfold_sigterm = SIGTERM, pinfold_sigint = SIGINT;

intptr_t pinfold_duplicate(int fd) { return PINFOLD_RETRY(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }
