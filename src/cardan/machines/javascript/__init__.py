"""The printer of JavaScript: programs in, text out, for browsers and Node.js. Only graphs are printed.

`graph` prints the straight line, with `operations` for what each operation is called in JavaScript; `module` prints
a program as an ES module around it.
"""
