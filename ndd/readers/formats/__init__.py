"""What parses the containers that readers read: records, archives, annotations."""
