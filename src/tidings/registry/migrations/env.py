"""What Alembic runs for a migration: everything in the transaction of the connection it is given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
