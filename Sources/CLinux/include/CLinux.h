/* What PinfoldLoop needs of Linux, as functions the Swift importer can read.

   Each call answers a count or a descriptor, or the negated errno: errno is read before anything else can run, and
   Swift never touches the thread-local. Calls cut by a signal are made again. No system header with types is included
   here: with _GNU_SOURCE they differ from the ones Swift's own Glibc module was built with. */
#ifndef PINFOLD_CLINUX_H
#define PINFOLD_CLINUX_H
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* An IP address with its port in host order. family is 4, 6, or 0 for anything else (UNIX, unnamed). */
typedef struct pinfold_address {
  uint64_t high;
  uint64_t low;
  uint32_t v4;
  uint16_t port;
  uint8_t family;
} pinfold_address;

/* A stream socket, non-blocking and closed on exec: family 4, 6 or 1 for UNIX. TCP gets TCP_NODELAY at birth:
   accepted sockets inherit it from their listener on Linux, so no tunnel pays a call for it. */
intptr_t pinfold_socket(uint8_t family);

intptr_t pinfold_reuse(int fd, int sharesPort);

/* IPv6 listeners take IPv6 only, so that no IPv4 client hides behind a mapped address. */
intptr_t pinfold_bind(int fd, pinfold_address address);

intptr_t pinfold_bind_unix(int fd, const char *_Nonnull path);

intptr_t pinfold_listen(int fd, int backlog);

/* Not made again after EINTR: the connection goes on by itself, and asking again answers EALREADY. */
intptr_t pinfold_connect(int fd, pinfold_address address);

intptr_t pinfold_connect_unix(int fd, const char *_Nonnull path);

intptr_t pinfold_accept(int fd, pinfold_address *_Nonnull peer);

pinfold_address pinfold_local_address(int fd);

/* The pending error of a socket as a positive errno, 0 if none; reading it clears it. */
int pinfold_socket_error(int fd);

intptr_t pinfold_recv(int fd, void *_Nonnull buffer, size_t count);

/* 1: something to read, 0: end of stream, else the error. Takes nothing out. */
intptr_t pinfold_peek(int fd);

intptr_t pinfold_send(int fd, const void *_Nonnull buffer, size_t count);

/* splice(2) between a socket and a pipe; never waits on either. */
intptr_t pinfold_splice(int from, int to, size_t count);

/* Answers the pipe's capacity in bytes. A size that is not allowed leaves the default one. */
intptr_t pinfold_pipe(int *_Nonnull reader, int *_Nonnull writer, int size);

intptr_t pinfold_shutdown_write(int fd);

/* Ends both directions: whoever polls the descriptor sees an end. */
void pinfold_shutdown(int fd);

/* Linux frees the descriptor even when close answers EINTR, so it is never called twice. */
void pinfold_close(int fd);

/* Closes with a reset instead of a FIN: socket(7), SO_LINGER with time zero. */
void pinfold_close_reset(int fd);

intptr_t pinfold_eventfd(void);

void pinfold_eventfd_signal(int fd);

/* A timer on the monotonic clock that becomes readable when its time comes: timerfd_create(2). */
intptr_t pinfold_timerfd(void);

/* Sets it for a moment of pinfold_monotonic_nanoseconds' clock; 0 stops it. */
void pinfold_timerfd_set(int fd, uint64_t nanoseconds);

/* A descriptor kept so that it can be given up when there are no others. */
intptr_t pinfold_open_null(void);
/* Opens /dev/null on those of 0, 1 and 2 that are closed, so that nothing else comes to have these numbers; the wrong way
   round, so that reads and writes fail there as they did. */
void pinfold_fill_standard_descriptors(void);

uint64_t pinfold_monotonic_nanoseconds(void);

/* Never 0. */
uintptr_t pinfold_thread(void);

/* 1 if the path is a socket, 0 if it is something else, -ENOENT if there is nothing. Links are not followed. */
intptr_t pinfold_is_socket(const char *_Nonnull path);

/* Which file it is, whatever its name: stat(2). inode is 0 where there is none. */
typedef struct pinfold_file {
  uint64_t device;
  uint64_t inode;
} pinfold_file;

/* The file at the path. Links are not followed. */
pinfold_file pinfold_look_at_file(const char *_Nonnull path);

intptr_t pinfold_unlink(const char *_Nonnull path);

/* Answers the limit now in force on open descriptors; a wish of 0 asks for the hard limit. */
intptr_t pinfold_descriptor_limit(uint64_t wish, int changes);

/* The number of open descriptors, by /proc/self/fd, without the one used for counting. */
intptr_t pinfold_descriptor_count(void);

void pinfold_ignore_write_signals(void);

/* signal(7) numbers; <signal.h> may not be included here. */
extern const int pinfold_sighup, pinfold_sigterm, pinfold_sigint;

/* Lets the calling thread receive a signal that whoever started the process may have blocked. */
void pinfold_unblock_signal(int number);

/* Has a signal wait while the calling thread, and those it starts from here on, cannot answer it yet. */
void pinfold_block_signal(int number);

/* Makes a named pipe of this mode, whatever the umask, unless there is one, and opens it for reading. Kept open for
   writing too, so that it never ends and no writer ever waits for a reader. Anything at the path that is no pipe is
   left alone: -EEXIST. */
intptr_t pinfold_open_fifo(const char *_Nonnull path, unsigned mode);

/* Looks at a named pipe without opening it: its permissions, and whether its owner is this process's user or root.
   -EEXIST where something else has the path. */
intptr_t pinfold_look_at_fifo(const char *_Nonnull path, unsigned *_Nonnull mode, int *_Nonnull is_foreign);

/* read(2). */
intptr_t pinfold_read(int fd, void *_Nonnull buffer, size_t count);

/* A second descriptor for the same socket, closed on exec. */
intptr_t pinfold_duplicate(int fd);

/* pthread_t is an integer here and a pointer elsewhere; start and join keep it out of Swift. */
intptr_t pinfold_thread_start(
    const char *_Nonnull name, void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context,
    uintptr_t *_Nonnull thread);

void pinfold_thread_join(uintptr_t thread);

/* 1 once the thread has ended, 0 if it has not by then (pinfold_monotonic_nanoseconds' clock). Not to be joined again
   after a 1. */
int pinfold_thread_join_until(uintptr_t thread, uint64_t nanoseconds);

/* strerror is not safe between threads; this one's answers live for ever. */
const char *_Nonnull pinfold_error_text(int error);
#endif
