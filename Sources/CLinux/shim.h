/* Linux calls that glibc declares only with _GNU_SOURCE, and socket macros the importer cannot read. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef PINFOLD_CLINUX_H
#define PINFOLD_CLINUX_H
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#endif
