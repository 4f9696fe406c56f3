/* Domain names: libidn2 (UTS 46 A-labels) and libpsl (the Public Suffix List). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef PINFOLD_CDOMAIN_H
#define PINFOLD_CDOMAIN_H
#include <idn2.h>
#include <libpsl.h>
#endif
