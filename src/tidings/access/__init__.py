"""Who asks: tokens become principals, principals have rights, and open access stays on this machine.

Refuses to start when it could let in anybody. Knows nothing of HTTP but the Authorization header. May import `registry`,
`config` and `errors`; PyJWT stays in `jwts`.
"""
