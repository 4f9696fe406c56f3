/* What the Swift importer needs of libevent. _GNU_SOURCE comes first: libevent's headers define it, other C
   modules here do not, and fd_set would differ between them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef PINFOLD_CLIBEVENT_H
#define PINFOLD_CLIBEVENT_H
#include <event2/buffer.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <event2/util.h>
#endif
