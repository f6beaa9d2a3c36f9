"""One run on a pretended GPU: callable → [Op]. The only front end that runs user code."""
