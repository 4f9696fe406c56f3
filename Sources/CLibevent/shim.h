/* What the Swift importer needs of libevent. <features.h> comes first, without _GNU_SOURCE: libevent's headers define
   that later, when it has no effect any more, and so fd_set is the one of Swift's own Glibc module. */
#ifndef PINFOLD_CLIBEVENT_H
#define PINFOLD_CLIBEVENT_H
#undef _GNU_SOURCE
#include <features.h>
#include <event2/buffer.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/thread.h>
#include <event2/util.h>
#include <netdb.h>

/* Flags are macros without a type, and short in some calls and int in others. */
static const short pinfold_ev_read = EV_READ;
static const short pinfold_ev_write = EV_WRITE;
static const short pinfold_ev_closed = EV_CLOSED;
static const short pinfold_ev_timeout = EV_TIMEOUT;
static const short pinfold_ev_stream = EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST;
static const short pinfold_ev_edge = EV_READ | EV_ET | EV_PERSIST;
static const short pinfold_ev_level = EV_READ | EV_PERSIST;
static const short pinfold_ev_signal = EV_SIGNAL | EV_PERSIST;
#endif
