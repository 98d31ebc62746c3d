"""Operations of ours, played one statement at a time on both engines: in every order, and broken off everywhere."""
