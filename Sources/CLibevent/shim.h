/* What the Swift importer needs of libevent. <features.h> comes first, without _GNU_SOURCE: libevent's headers define
   that later, when it has no effect any more, and so fd_set is the one of Swift's own Glibc module. */
#ifndef PINFOLD_CLIBEVENT_H
#define PINFOLD_CLIBEVENT_H
#undef _GNU_SOURCE
#include <features.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <event2/keyvalq_struct.h>
#include <event2/thread.h>
#include <event2/util.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Flags are macros without a type, and short in some calls and int in others. */
static const short pinfold_ev_read = EV_READ;
static const short pinfold_ev_write = EV_WRITE;
static const short pinfold_ev_closed = EV_CLOSED;
static const short pinfold_ev_timeout = EV_TIMEOUT;
static const short pinfold_ev_stream = EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST;
static const short pinfold_ev_edge = EV_READ | EV_ET | EV_PERSIST;
static const short pinfold_ev_level = EV_READ | EV_PERSIST;
static const short pinfold_ev_signal = EV_SIGNAL | EV_PERSIST;

/* Enumerators and flags of several C types, as the calls want them. */
static const int pinfold_dns_options =
    DNS_OPTION_SEARCH | DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC | DNS_OPTION_NAMESERVERS_NO_DEFAULT;
static const int pinfold_dns_base_flags = EVDNS_BASE_NAMESERVERS_NO_DEFAULT;
/* Every method that evhttp knows; the rest it answers with 501. */
static const uint16_t pinfold_http_methods = EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT
    | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH;

/* Callbacks deferred to the loop's next pass: none comes while the call that set it going has not returned. */
static const int pinfold_bev_options = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS;
static const short pinfold_bev_connected = BEV_EVENT_CONNECTED;

/* errno, a macro: libevent leaves it as the failed call set it while it tells of an error. */
static inline int pinfold_last_errno(void) { return EVUTIL_SOCKET_ERROR(); }

/* Whether a socket has a peer: not before its connection is made. */
static inline int pinfold_has_peer(int descriptor) {
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  return getpeername(descriptor, (struct sockaddr *)&peer, &size) == 0;
}

static inline struct evutil_addrinfo pinfold_stream_hints(void) {
  struct evutil_addrinfo hints;
  memset(&hints, 0, sizeof hints);
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_protocol = IPPROTO_TCP;
  return hints;
}

/* Writes the 4 or 16 bytes of an answer's address and returns their count, 0 for other families: sockaddr's casts
   cannot be written safely in Swift. */
static inline int pinfold_address_bytes(const struct evutil_addrinfo *_Nonnull entry, uint8_t *_Nonnull bytes) {
  if (entry->ai_family == AF_INET && entry->ai_addrlen >= sizeof(struct sockaddr_in)) {
    memcpy(bytes, &((const struct sockaddr_in *)entry->ai_addr)->sin_addr, 4);
    return 4;
  }
  if (entry->ai_family == AF_INET6 && entry->ai_addrlen >= sizeof(struct sockaddr_in6)) {
    memcpy(bytes, &((const struct sockaddr_in6 *)entry->ai_addr)->sin6_addr, 16);
    return 16;
  }
  return 0;
}
#endif
