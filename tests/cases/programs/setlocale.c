/* Loaded into a program under test: takes the locale of the environment when it is loaded, as a library that is careless with its
 * process does. */
#include <locale.h>

__attribute__((constructor)) static void take_locale(void) { setlocale(LC_ALL, ""); }
